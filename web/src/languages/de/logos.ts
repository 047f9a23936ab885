import { bytes, number, plural } from '$lib/i18n';
import type { text } from '../../pages/logos/text';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} Sender`;
const logoCount = (n: number) => plural(n, '1 Logo', `${number(n)} Logos`);

export const logos: Texts<typeof text> = {
	logos: logoCount,
	channels,
	search: 'Logos suchen',
	use: 'Verwendung',
	uses: { any: 'Benutzte und unbenutzte', used: 'Von Sendern benutzt', unused: 'Unbenutzt' },
	columns: { name: 'Name', address: 'Adresse', channels: 'Sender' },
	add: 'Logo hinzufügen',
	deleteUnused: 'Unbenutzte Logos löschen',
	deleteUnusedTitle: 'Alle Logos löschen, die kein Sender benutzt?',
	deleteText: 'Sender verlieren gelöschte Logos. Sie können es einen Tag lang rückgängig machen.',
	deleteMany: (n) => `${logoCount(n)} löschen`,
	question: (action) => `${action}?`,
	batches: (n) => `Höchstens ${logoCount(n)} lassen sich auf einmal löschen.`,
	emptyTitle: 'Noch keine Logos',
	emptyText: 'Logos kommen mit Playlists oder werden hier hinzugefügt.',
	noMatch: 'Kein Logo gefunden',
	newTitle: 'Logo hinzufügen',
	wayLabel: 'Woher das Logo kommt',
	ways: { url: 'Adresse', file: 'Datei' },
	name: 'Name',
	nameHint: 'Standard: der Name der Datei.',
	url: 'Adresse des Bildes',
	file: 'Bild',
	fileHint: (n) => `PNG, JPEG, WebP, GIF oder SVG, bis ${bytes(n)}.`,
	fileMissing: 'Wählen Sie eine Datei.',
	uploaded: 'hochgeladen',
	usedBy: (n) =>
		n === 0 ? 'Kein Sender benutzt es.' : `Benutzt von ${plural(n, '1 Sender', `${number(n)} Sendern`)}:`,
	saved: 'Gespeichert.',
	uploading: 'Wird hochgeladen',
};
