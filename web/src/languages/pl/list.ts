import { number } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `Wybrano: ${number(n)}`,
	selectAll: (n) => `Wybierz wszystkie (${number(n)})`,
	clear: 'Wyczyść wybór',
	select: 'Wybierz',
	keys: 'Strzałki przesuwają, Enter otwiera, spacja wybiera.',
};
