import { number, plural } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `${number(n)} ${plural(n, 'sélectionné', 'sélectionnés')}`,
	selectAll: (n) => `Tout sélectionner (${number(n)})`,
	clear: 'Effacer la sélection',
	select: 'Sélectionner',
	keys: 'Flèches pour se déplacer, Entrée pour ouvrir, Espace pour sélectionner.',
	editKeys: 'F2 modifie la ligne.',
	moveKeys: 'Alt avec une flèche choisit une autre place, Entrée y déplace la ligne.',
	moving: (place) => `Vers la place ${number(place)}. Entrée déplace la ligne, Échap la laisse.`,
	place: 'Place',
};
