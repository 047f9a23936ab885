import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/logos/text';
import type { Texts } from '../catalogue';
import { nChannels, nLogos } from './nouns';

export const logos: Texts<typeof text> = {
	logos: nLogos,
	channels: nChannels,
	search: 'Szukaj logo',
	use: 'Użycie',
	uses: { any: 'Używane i nieużywane', used: 'Używane przez kanały', unused: 'Nieużywane' },
	columns: { name: 'Nazwa', address: 'Adres', channels: 'Kanały' },
	add: 'Dodaj logo',
	deleteUnused: 'Usuń nieużywane logo',
	deleteUnusedTitle: 'Usunąć wszystkie logo, których nie używa żaden kanał?',
	deleteText: 'Kanały stracą usunięte logo. Można to cofnąć przez jeden dzień.',
	deleteMany: (n) => `Usuń ${nLogos(n)}`,
	question: (action) => `${action}?`,
	batches: (n) => `Naraz można usunąć najwyżej ${nLogos(n)}.`,
	emptyTitle: 'Brak logo',
	emptyText: 'Logo pochodzą z list albo są dodawane tutaj.',
	noMatch: 'Żadne logo nie pasuje',
	newTitle: 'Dodaj logo',
	wayLabel: 'Skąd pochodzi logo',
	ways: { url: 'Adres', file: 'Plik' },
	name: 'Nazwa',
	nameHint: 'Domyślnie nazwa pliku.',
	url: 'Adres obrazu',
	file: 'Obraz',
	fileHint: (n) => `PNG, JPEG, WebP, GIF lub SVG, do ${bytes(n)}.`,
	fileMissing: 'Wybierz plik.',
	uploaded: 'przesłane',
	usedBy: (n) => (n === 0 ? 'Żaden kanał go nie używa.' : `Kanały, które go używają (${number(n)}):`),
	saved: 'Zapisano.',
	uploading: 'Przesyłanie',
};
