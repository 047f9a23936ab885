import { number, plural } from '$lib/i18n';
import type { replacementText } from '../../pages/sources/replacementText';
import type { Texts } from '../catalogue';

const streams = (n: number) => plural(n, '1 Stream', `${number(n)} Streams`);
const keyOf = { panel_id: 'Nummer beim Panel', guide_id: 'Guide-ID', name: 'Name' };

export const replacement: Texts<typeof replacementText> = {
	intro:
		'Überträgt die Sender dieser Quelle auf eine andere, etwa einen neuen Anbieter. Jeder Stream wird durch den am besten passenden ersetzt. Sender behalten Nummern, Namen, Favoriten und Aufnahmen.',
	target: 'Ersetzen durch',
	choose: 'Quelle wählen',
	noTargets: 'Keine andere Quelle',
	noTargetsText:
		'Fügen Sie den neuen Anbieter als Quelle hinzu, aktualisieren Sie sie, und kommen Sie wieder.',
	score: 'Kleinste Wertung eines Paars in Prozent',
	scoreHint: 'Von 85 bis 100. Eine höhere Wertung lässt mehr Streams, wie sie sind.',
	preview: 'Vorschau',
	counts: 'Was sich ändern würde',
	count: {
		channels: 'Sender bekommen Streams der anderen Quelle',
		pairs: 'Streams haben ein Gegenstück',
		unpaired: 'Streams haben keines und bleiben',
		removed: 'Sender, die die andere Quelle für dieselben Streams anlegte, werden entfernt',
		kept: 'solche Sender bleiben, weil sie geändert wurden oder in Gebrauch sind',
	},
	foundBy: (key, n) => `${keyOf[key]}: ${number(n)}`,
	keyOf,
	reasonOf: { no_match: 'Nichts passt', ambiguous: 'Mehrere passen gleich gut', excepted: 'Ausgelassen' },
	lists: 'Streams',
	listOf: { pairs: 'Paare', unpaired: 'Ohne Gegenstück' },
	columns: {
		name: 'Stream',
		replacement: 'Ersetzt durch',
		host: 'Host',
		key: 'Gefunden an',
		score: 'Wertung',
		reason: 'Warum',
		channels: 'Sender',
	},
	listed: (n, of) => `${number(n)} von ${streams(of)} sind aufgeführt.`,
	more: 'Mehr aufführen',
	nothing: 'Kein Stream dieser Quelle hat ein Gegenstück.',
	leftOut: (n) => `${streams(n)} ausgelassen.`,
	apply: (n) => `Streams von ${plural(n, '1 Sender', `${number(n)} Sendern`)} ersetzen`,
	canUndo: 'Sie können das 24 Stunden lang rückgängig machen, hier oder unter „Aktivität“.',
};
