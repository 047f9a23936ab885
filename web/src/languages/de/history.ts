import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/history/text';
import type { Texts } from '../catalogue';

export const history: Texts<typeof text> = {
	intro:
		'Alle zehn Sekunden gemessen und auf diesem Gateway aufbewahrt: zwei Tage in Schritten von fünf Minuten, 60 Tage in Stunden.',
	introNode: (node) =>
		`Alle zehn Sekunden auf dem Knoten ${node} gemessen, der seinen eigenen Verlauf aufbewahrt: zwei Tage in Schritten von fünf Minuten, 60 Tage in Stunden.`,
	scope: 'Anzeigen',
	scopes: {
		gateway: 'Ganzes Gateway',
		account: 'Konto',
		channel: 'Sender',
		stream: 'Stream',
		user: 'Benutzer',
	},
	choose: {
		account: 'Wählen Sie ein Konto, um seinen Verlauf zu sehen.',
		channel: 'Wählen Sie einen Sender, um seinen Verlauf zu sehen.',
		stream: 'Wählen Sie einen Stream, um seinen Verlauf zu sehen.',
		user: 'Wählen Sie einen Benutzer, um den Verlauf zu sehen.',
	},
	streams: 'Streams des Senders',
	nobody: 'Nichts gewählt',
	range: 'Zeitraum',
	ranges: { '6h': '6 Stunden', '24h': '24 Stunden', '7d': '7 Tage', '60d': '60 Tage' },
	off: 'Der Verlauf ist ausgeschaltet',
	offText: 'Nichts wird aufbewahrt. In den Einstellungen wird er eingeschaltet.',
	offUser: 'Von Benutzern wird kein Verlauf aufbewahrt',
	offUserText: 'Raten und Zuschauer je Benutzer werden nur aufbewahrt, wenn die Einstellungen es sagen.',
	toSettings: 'Einstellungen öffnen',
	nothing: 'Noch nichts bekannt',
	nothingText: 'Die ersten Werte erscheinen nach einer Minute.',
	charts: {
		rate: 'Rate',
		viewers: 'Zuschauer',
		slots: 'Belegte Verbindungen',
		health: 'Spielzeit',
		failovers: 'Umschaltungen',
		recordings: 'Speicher der Aufnahmen',
	},
	series: {
		in: 'Empfangen',
		out: 'Gesendet',
		viewers: 'Mittel',
		viewersMax: 'Spitze',
		slots: 'Belegt',
		limit: 'Limit',
		recordings: 'Größe',
	},
	highest: (value) => `höchstens ${value}`,
	said: (chart, parts) => `${chart}: ${parts}.`,
	seriesSaid: (name, newest, highest) => `${name} ${newest}, höchstens ${highest}`,
	unknown: 'unbekannt',
	noLimit: 'ohne Limit',
	failovers: (n) => `${number(n)} ${plural(n, 'Umschaltung', 'Umschaltungen')}`,
	losses: (n) => `${number(n)} ${plural(n, 'Ausfall', 'Ausfälle')} von Streams`,
	playing: (share) => `spielte ${share} der genutzten Zeit`,
	notUsed: 'nicht genutzt',
	asTable: 'Als Tabelle',
	time: 'Zeit',
};
