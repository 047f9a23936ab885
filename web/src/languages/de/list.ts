import { number } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `${number(n)} ausgewählt`,
	selectAll: (n) => `Alle ${number(n)} auswählen`,
	clear: 'Auswahl aufheben',
	select: 'Auswählen',
	keys: 'Pfeiltasten bewegen, Eingabe öffnet, Leertaste wählt aus.',
};
