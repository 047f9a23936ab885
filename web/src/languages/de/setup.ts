import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/setup/text';
import type { Texts } from '../catalogue';

const streams = (n: number) => plural(n, '1 Stream', `${number(n)} Streams`);
const channels = (n: number) => `${number(n)} Sender`;

export const setup: Texts<typeof text> = {
	product: 'Headwater',
	stepsLabel: 'Schritte',
	steps: {
		admin: 'Erster Admin',
		source: 'Quelle',
		groups: 'Gruppen',
		channels: 'Sender',
		addresses: 'Player',
		test: 'Test',
	},
	stepOf: (n, of, name) => `Schritt ${number(n)} von ${number(of)}: ${name}`,
	continue: 'Weiter',
	leave: 'Einrichtung verlassen',
	adminTitle: 'Ersten Admin anlegen',
	adminText: 'Der Admin richtet das Gateway ein. Weitere Benutzer folgen später.',
	username: 'Benutzername',
	password: 'Passwort',
	passwordHint: 'Mindestens 10 Zeichen, ohne den Benutzernamen.',
	code: 'Einrichtungscode',
	codeHint: 'Der Teil hinter # der Adresse, die Headwater beim Start ausgegeben hat.',
	noCode:
		'Der Code steht bei jedem Start im Protokoll des Gateways. Auf seinem Rechner geht auch: headwater user add admin --superuser',
	create: 'Anlegen und anmelden',
	signInTitle: 'Anmelden',
	signInText: 'Es gibt einen Admin. Melden Sie sich an, um fortzufahren.',
	notAdmin: 'Nur Admins können die Einrichtung fortsetzen.',
	signIn: 'Anmelden',
	sourceTitle: 'Woher kommen die Streams?',
	sourcesKnown: (n) => plural(n, '1 Quelle ist eingerichtet.', `${number(n)} Quellen sind eingerichtet.`),
	anotherSource: 'Weitere Quelle hinzufügen',
	groupsTitle: 'Welche Gruppen möchten Sie?',
	groupsText:
		'Weggelassene Gruppen werden nicht importiert. Das können Sie jederzeit unter „Quellen“ ändern.',
	noGroups: 'Die Liste hat keine Gruppen. Weiter mit allen Streams.',
	source: 'Quelle',
	group: 'Gruppe',
	streamsTitle: 'Streams',
	selected: (n, of, s) =>
		`${number(n)} von ${plural(of, '1 Gruppe', `${number(of)} Gruppen`)}, ${streams(s)}`,
	noneSelected: 'Wählen Sie mindestens eine Gruppe.',
	search: 'Gruppen suchen',
	applying: 'Die Liste wird ohne die weggelassenen Gruppen neu gelesen.',
	channelsTitle: 'Sender aus den Streams anlegen',
	same: 'Streams desselben Senders',
	sameHint: 'Ein Sender kann mehrere Streams haben. Fällt einer aus, läuft der nächste.',
	merge: {
		name: 'haben denselben Namen',
		tvg_id: 'haben dieselbe Guide-ID',
		none: 'jeder Stream wird ein Sender',
	},
	numbers: 'Nummern',
	numbering: {
		provider: 'des Anbieters, sonst die niedrigsten freien',
		from: 'ab einer ersten Nummer',
	},
	firstNumber: 'Erste Nummer',
	previewOf: (n, of) =>
		n < of ? `Vorschau der ersten ${number(n)} von ${streams(of)}` : `Vorschau von ${streams(of)}`,
	becomes: (s, c) => `${streams(s)} ${plural(s, 'wird', 'werden')} ${channels(c)}.`,
	toExisting: (n) => `${streams(n)} ${plural(n, 'kommt', 'kommen')} zu vorhandenen Sendern hinzu.`,
	make: (n) => `Sender aus ${streams(n)} anlegen`,
	skip: 'Weiter ohne',
	making: (done, of) => `${number(done)} von ${streams(of)}`,
	made: (created, merged) =>
		merged > 0
			? `${channels(created)} angelegt und ${streams(merged)} zu Sendern hinzugefügt.`
			: `${channels(created)} angelegt.`,
	numberColumn: 'Nr.',
	nameColumn: 'Name',
	streamsColumn: 'Streams',
	noStreams: 'Diese Quelle hat keine Live-Streams.',
	addressesTitle: 'Geben Sie das in Ihren Playern ein',
	testTitle: 'Einen Sender ansehen',
	testChannel: 'Sender',
	noChannels: 'Es gibt noch keine Sender.',
	checks: 'Prüfungen',
	check: {
		slot: 'Verbindung der Quelle',
		connection: 'Verbindung zum Anbieter',
		packet: 'Erste Daten',
		picture: 'Bild in diesem Browser',
	},
	checkStates: { waiting: 'wartet', good: 'funktioniert', bad: 'fehlgeschlagen' },
	finished: 'Der Sender läuft. Die Einrichtung ist fertig.',
	toNow: 'Headwater öffnen',
};
