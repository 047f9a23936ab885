import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/health/text';
import type { Texts } from '../catalogue';

export const health: Texts<typeof text> = {
	good: 'Alles funktioniert',
	problems: (n) => plural(n, '1 Problem', `${number(n)} Probleme`),
	confinement: 'Abschottung, die diesem Rechner fehlt',
	confinementHint:
		'Plugins und Programme laufen ohne diese Grenzen. Bei jeder steht eine Zeile, mit der sie hinzukommt.',
	parts: {
		landlock: 'Dateien und Ports (Landlock)',
		control_group: 'Speicher und Prozessoren (Control Groups)',
	},
	overview: 'Überblick',
	version: 'Version',
	channels: 'Sender',
	live: 'Laufende Sender',
	viewers: 'Zuschauer',
	accounts: 'Aktive Quellen',
	failing: 'Gestörte Quellen',
	expiring: 'Ablaufende Zugänge',
	disk: 'Freier Speicherplatz',
	diskOf: (free, all) => `${free} von ${all}`,
	store: 'Datenspeicher',
	storeOf: (records, disk) => `${records} Daten, ${disk} auf der Platte`,
	readOnly: 'Änderungen werden abgelehnt.',
	nodes: 'Knoten des Clusters',
	nodesOf: (members, all) => `${number(members)} von ${number(all)} sind Mitglieder`,
	log: 'Protokoll',
	logTo: 'Protokoll ansehen',
	logLevel: 'Zeilen',
	logLevels: { error: 'Fehler', warn: 'Warnungen und Fehler', info: 'Alles außer Details', debug: 'Alles' },
	logSearch: 'Protokoll durchsuchen',
	noLog: 'Keine solchen Zeilen seit dem Start.',
	time: 'Zeit',
	level: 'Stufe',
	message: 'Meldung',
	warning: 'Warnung',
	error: 'Fehler',
	fix: 'Zur Abhilfe',
};
