import { number, plural } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => plural(n, '1 selezionato', `${number(n)} selezionati`),
	selectAll: (n) => `Seleziona tutti (${number(n)})`,
	clear: 'Deseleziona',
	select: 'Seleziona',
	keys: 'Le frecce spostano, Invio apre, Spazio seleziona.',
	editKeys: 'F2 modifica la riga.',
	moveKeys: 'Alt con una freccia sceglie un altro posto, Invio sposta lì la riga.',
	moving: (place) => `Al posto ${number(place)}. Invio sposta la riga, Esc la lascia.`,
	place: 'Posto',
};
