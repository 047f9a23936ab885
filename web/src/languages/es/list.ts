import { number, plural } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `${number(n)} ${plural(n, 'seleccionado', 'seleccionados')}`,
	selectAll: (n) => `Seleccionar los ${number(n)}`,
	clear: 'Quitar la selección',
	select: 'Seleccionar',
	keys: 'Las flechas mueven, Intro abre, Espacio selecciona.',
};
