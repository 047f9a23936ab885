import { number, plural } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `${number(n)} ${plural(n, 'seleccionado', 'seleccionados')}`,
	selectAll: (n) => `Seleccionar los ${number(n)}`,
	clear: 'Quitar la selección',
	select: 'Seleccionar',
	keys: 'Las flechas mueven, Intro abre, Espacio selecciona.',
	editKeys: 'F2 edita la fila.',
	moveKeys: 'Alt con una flecha elige otro lugar, Intro mueve la fila allí.',
	moving: (place) => `Al lugar ${number(place)}. Intro mueve la fila, Escape la deja.`,
	place: 'Lugar',
};
