import { number, plural } from '$lib/i18n';
import type { afterText } from '../../pages/recordings/afterText';
import type { Texts } from '../catalogue';

const conversions = {
	queued: (format: string) => `wird in ${format} umgewandelt`,
	running: (format: string) => `wird gerade in ${format} umgewandelt`,
	completed: (format: string) => format,
	failed: (format: string) => `nicht in ${format} umgewandelt`,
};

export const afterRecordings: Texts<typeof afterText> = {
	title: 'Nach einer Aufnahme',
	remux: (status, format, reason) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(': '),
	container: 'Container',
	containerHint: 'Der Transportstrom bleibt, bis die neue Datei dieselben Spuren und dieselbe Länge hat.',
	containers: { none: 'wie aufgenommen (Transportstrom)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Neben jede Datei eine Beschreibung für Medienserver schreiben (NFO)',
	artwork: 'Neben jede Datei ein Bild für Medienserver schreiben',
	mode: 'Gefundene Werbung',
	modeHint: 'Die Aufnahme bleibt, wie sie ist.',
	modes: {
		mark: 'wird markiert',
		cut: 'wird markiert und in einer Kopie neben der Aufnahme ausgelassen',
	},
	saved: 'Gespeichert.',
	commercials: 'Werbung',
	search: 'Werbung suchen',
	searches: {
		queued: 'wartet',
		running: 'sucht',
		completed: 'gefunden',
		none_found: 'keine gefunden',
		failed: 'fehlgeschlagen',
	},
	breaks: (n, length) => plural(n, `1 Block, ${length}`, `${number(n)} Blöcke, ${length}`),
	columns: { start: 'Von', end: 'Bis', length: 'Länge' },
	cut: 'Kopie ohne Werbung',
	cuts: { queued: 'wartet', running: 'wird erstellt', completed: 'fertig', failed: 'fehlgeschlagen' },
	playCut: 'Kopie abspielen',
	saveCut: 'Kopie herunterladen',
	notSearched: 'Nach Werbung wurde noch nicht gesucht.',
	comskip: 'Werbung (comskip)',
	missing: 'Das Programm comskip ist nicht installiert, oder programs.comskip nennt ein anderes.',
	enabled: 'Nach jeder Aufnahme Werbung suchen',
	config: 'Konfiguration',
	configHint: 'Zeilen von comskip.ini, etwa detect_method=43. Leer: die Werte von comskip selbst.',
	upload: 'Konfiguration aus einer Datei lesen',
	uploaded: 'Die Konfiguration wurde ersetzt.',
};
