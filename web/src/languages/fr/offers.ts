import { number, plural } from '$lib/i18n';
import type { offersText } from '../../pages/sources/offersText';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} ${plural(n, 'chaîne', 'chaînes')}`;

export const offers: Texts<typeof offersText> = {
	intro:
		'La playlist nomme ces guides. Lisez-les pour voir combien de vos chaînes chacun servirait, puis ajoutez ceux qu’il vous faut.',
	emptyTitle: 'La playlist ne nomme aucun guide',
	emptyText: 'Les guides qui ont leur propre adresse s’ajoutent dans Sources, Guides.',
	readAll: (n) => plural(n, 'Lire le guide', `Lire les ${number(n)} guides`),
	read: 'Lire',
	readOne: (address, n) => `Lire le guide ${n}\u00a0: ${address}`,
	reading: (n, of) => `Lecture du guide ${number(n)} sur ${number(of)}`,
	stop: 'Arrêter la lecture',
	add: 'Ajouter comme source',
	addOne: (address, n) => `Ajouter le guide ${n} comme source\u00a0: ${address}`,
	added: (name) => `${name} ajouté. Sa première actualisation a commencé.`,
	isAdded: 'ajouté',
	open: 'Ouvrir',
	openOne: (n) => `Ouvrir le guide ${n}`,
	showAddresses: 'Afficher les adresses',
	hideAddresses: 'Masquer les adresses',
	serves: (n, added) =>
		n === 0
			? 'Ne sert aucune de vos chaînes'
			: `Sert ${channels(n)}, ${added === 0 ? 'toutes avec un guide' : `dont ${number(added)} sans guide actuellement`}`,
	inGuide: (n, same) => `${channels(n)} dans le guide, ${number(same)} de même ID`,
};
