import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/permissions/text';
import type { Texts } from '../catalogue';

const users = (n: number): string => `${number(n)} ${plural(n, 'utilisateur', 'utilisateurs')}`;

export const permissions: Texts<typeof text> = {
	back: 'Utilisateurs',
	intro:
		'Ces autorisations ont été attribuées avant d’avoir un effet, ou par un import. Elles n’autorisent rien tant que vous ne les confirmez pas.',
	effects: 'Ce qu’elles autorisent',
	permission: 'Autorisation',
	effect: 'Effet',
	list: 'Utilisateurs aux autorisations non confirmées',
	columns: { user: 'Utilisateur', permissions: 'Autorisations' },
	search: 'Rechercher des utilisateurs',
	none: 'Aucune autorisation en attente',
	noneText: 'Toutes les autorisations qui ont un effet sont confirmées.',
	noMatch: 'Aucun utilisateur trouvé',
	confirm: 'Confirmer',
	confirmAll: (n) => `Tout confirmer (${number(n)})`,
	confirmOf: (name) => `Confirmer les autorisations de ${name}`,
	ask: (n) => `Confirmer les autorisations de ${users(n)}\u00a0?`,
	askText: 'Elles prennent effet aussitôt. Pour en reprendre une, retirez-la de l’utilisateur.',
	confirmed: (n) => `Confirmé pour ${users(n)}.`,
	notice: (n) => `${users(n)} ${plural(n, 'a', 'ont')} des autorisations que personne n’a confirmées`,
	noticeText: 'Elles n’ont pas d’effet tant qu’un administrateur ne les confirme pas.',
	look: 'Voir',
};
