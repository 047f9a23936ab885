import { number } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `Wybrano: ${number(n)}`,
	selectAll: (n) => `Wybierz wszystkie (${number(n)})`,
	clear: 'Wyczyść wybór',
	select: 'Wybierz',
	keys: 'Strzałki przesuwają, Enter otwiera, spacja wybiera.',
	editKeys: 'F2 edytuje wiersz.',
	moveKeys: 'Alt ze strzałką wskazuje inne miejsce, Enter przenosi tam wiersz.',
	moving: (place) => `Na miejsce ${number(place)}. Enter przenosi wiersz, Escape go zostawia.`,
	place: 'Miejsce',
};
