import { number, plural } from '$lib/i18n';
import type { storageText } from '../../pages/recordings/storageText';
import type { Texts } from '../catalogue';

const none = 'Leer: kein Limit.';

export const recordingStorage: Texts<typeof storageText> = {
	title: 'Speicher',
	limitsTitle: 'Limits',
	limitsText: 'Von fertigen Aufnahmen werden die ältesten zuerst gelöscht. Geschützte bleiben.',
	limits: {
		quota_bytes: ['Größe aller Aufnahmen, in GiB', none],
		user_quota_bytes: ['Größe der Aufnahmen je Benutzer, in GiB', none],
		retention_free_bytes: ['Platz, der auf der Platte frei bleibt, in GiB', none],
		retention_days: ['Tage, die Aufnahmen bleiben', 'Leer: solange Platz ist.'],
		retention_count: ['Aufnahmen, die bleiben', none],
	},
	saved: 'Gespeichert.',
	facts: { folder: 'Ordner', available: 'Freier Platz', used: 'Belegt', protected: 'Geschützt' },
	unknown: 'unbekannt',
	used: (size, n) => `${size}, ${plural(n, '1 Aufnahme', `${number(n)} Aufnahmen`)}`,
	unmounted: 'Der Ordner ist nicht eingehängt',
	unmountedText:
		'Ihm fehlt die Datei .headwater-recordings. Nichts wird aufgenommen oder gelöscht, bis die Platte zurück ist; die Liste der Aufnahmen bleibt.',
	full: 'Die Platte ist fast voll',
	fullText: 'Keine Aufnahme beginnt. Löschen Sie Aufnahmen, oder setzen Sie unten Limits, die alte löschen.',
	users: 'Benutzer',
	columns: { user: 'Benutzer', recordings: 'Aufnahmen', used: 'Belegt', quota: 'Limit' },
	nobody: 'kein Benutzer',
	noQuota: 'kein Limit',
	ofQuota: (share, quota) => `${share} von ${quota}`,
	isFull: 'voll',
	connections: 'Verbindungen',
	reserve: 'Minuten vor einer Aufnahme, ab denen ihre Verbindung reserviert ist',
	reserveHint: 'Neue Zuschauer bekommen sie in dieser Zeit nicht. 0: keine Reservierung.',
	disconnect: 'Aufnahmen dürfen Zuschauer trennen',
	disconnectHint: 'Wenn eine Sendung sonst keine Verbindung bekommt.',
	settings: 'Weitere Einstellungen der Aufnahmen',
};
