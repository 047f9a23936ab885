import { number } from '$lib/i18n';
import type { listText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const list: Texts<typeof listText> = {
	selected: (n) => `${number(n)} ausgewählt`,
	selectAll: (n) => `Alle ${number(n)} auswählen`,
	clear: 'Auswahl aufheben',
	select: 'Auswählen',
	keys: 'Pfeiltasten bewegen, Eingabe öffnet, Leertaste wählt aus.',
	editKeys: 'F2 bearbeitet die Zeile.',
	moveKeys: 'Alt mit einer Pfeiltaste wählt einen anderen Platz, Eingabe verschiebt die Zeile dorthin.',
	moving: (place) => `Auf Platz ${number(place)}. Eingabe verschiebt die Zeile, Escape lässt sie stehen.`,
	place: 'Platz',
};
