import { number, plural } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `${number(n)} ${plural(n, 'selecionado', 'selecionados')}`,
	selectAll: (n) => `Selecionar todos (${number(n)})`,
	clear: 'Limpar a seleção',
	select: 'Selecionar',
	keys: 'As setas movem, Enter abre, Espaço seleciona.',
	editKeys: 'F2 edita a linha.',
	moveKeys: 'Alt com uma seta escolhe outro lugar, Enter move a linha para lá.',
	moving: (place) => `Para o lugar ${number(place)}. Enter move a linha, Escape deixa-a.`,
	place: 'Lugar',
};
