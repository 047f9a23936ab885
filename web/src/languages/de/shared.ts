import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/common/text';
import type { Texts } from '../catalogue';

export const shared: Texts<typeof text> = {
	xtreamTitle: 'Player-Apps, die Server, Benutzername und Passwort verlangen',
	server: 'Server',
	username: 'Benutzername',
	password: 'Passwort',
	playlistTitle: 'Player, die Adressen annehmen',
	kinds: {
		xtream: 'Server',
		m3u: 'Playlist (M3U)',
		xmltv: 'Programmführer (XMLTV)',
		m3u_with_key: 'Playlist mit API-Schlüssel',
		xmltv_with_key: 'Programmführer mit API-Schlüssel',
		recordings: 'Aufnahmen (M3U)',
		recordings_guide: 'Programmführer der Aufnahmen (XMLTV)',
		tuner: 'Tuner für Medienserver',
	},
	ofProfile: (kind, profile) => `${kind}, ${profile}`,
	holdsPassword: 'Diese Adressen enthalten das Passwort. Wer eine hat, kann zusehen.',
	withKeyTitle: 'Adressen, die einen Header brauchen',
	withKey: (header) => `Programme senden den API-Schlüssel im Header ${header}.`,
	loopback: (url) =>
		`${url} ist nur von diesem Rechner aus erreichbar. Öffnen Sie diese Seite unter der Adresse des Rechners in Ihrem Netz, oder legen Sie in den Einstellungen die öffentliche Adresse fest.`,
	allowNetworks: 'Erlaubte Netze ändern',
	favourite: (name) => `Favorit: ${name}`,
	sleep: {
		title: 'Einschlaftimer',
		after: 'Streams enden nach',
		start: 'Starten',
		change: 'Ändern',
		remove: 'Timer entfernen',
		endsAt: (time, when) => `Alle Streams enden um ${time} (${when}).`,
		isSet: 'Der Einschlaftimer ist gestellt.',
		isRemoved: 'Der Einschlaftimer ist entfernt.',
	},
	batch: (done, of) => `${number(done)} von ${plural(of, '1 Block', `${number(of)} Blöcken`)}`,
	stoppedAfter: (done, of, reason) =>
		`${number(done)} von ${plural(of, '1 Block', `${number(of)} Blöcken`)} erledigt, dann: ${reason}`,
	undone: 'Rückgängig gemacht.',
	pagesOf: (label) => `Seiten: ${label}`,
	older: 'Ältere',
	newer: 'Neuere',
	range: (from, until, all) => `${number(from)} bis ${number(until)} von ${number(all)}`,
	order: {
		moveUp: (name) => `${name} nach oben`,
		moveDown: (name) => `${name} nach unten`,
		moveTo: (name) => `Position von ${name}`,
		movedTo: (name, n) => `${name} ist an Position ${number(n)}`,
		shown: (n, of) => `${number(n)} von ${number(of)}`,
	},
};
