import { number } from '$lib/i18n';
import type { text } from '../../pages/slots/text';
import type { Texts } from '../catalogue';

export const slots: Texts<typeof text> = {
	intro: 'Chaque connexion à un fournisseur occupe une place d’un profil de compte.',
	idle: 'Aucune connexion n’est utilisée.',
	none: 'Aucun profil de compte',
	noneText: 'Les connexions apparaissent ici dès qu’il y a une source.',
	addSource: 'Ajouter une source',
	free: 'libre',
	closing: 'fermeture',
	cooling: (seconds) => `libre dans ${seconds} s`,
	unlimited: 'sans limite',
	discovered: (n) => `limite de ${number(n)} constatée`,
	inUse: (used, max) => `${number(used)} sur ${number(max)} en service`,
	used: (n) => `${number(n)} en service`,
	waiting: 'En attente',
	purposes: { live: '', preview: 'aperçu', trial: 'test', vod: 'film ou épisode' },
	since: (time) => `depuis ${time}`,
	groups: 'Groupes de serveurs',
	inactive: 'inactif',
	all: (n) => `Tout afficher (${number(n)})`,
};
