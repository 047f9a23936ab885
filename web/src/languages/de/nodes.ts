import { millis, number } from '$lib/i18n';
import type { text } from '../../pages/nodes/text';
import type { Texts } from '../catalogue';

export const nodes: Texts<typeof text> = {
	intro: 'Die Gateways dieses Clusters, wie das antwortende sie sieht.',
	alone: 'Dieses Gateway ist in keinem Cluster',
	aloneText:
		'Mehrere Gateways können wie eines arbeiten. Der Betreiber richtet das im Abschnitt [cluster] der Konfigurationsdatei ein.',
	disconnected: 'Die NATS-Server des Clusters sind nicht erreichbar',
	problem: 'Dieses Gateway kann kein Mitglied sein',
	error: 'Fehler',
	columns: {
		name: 'Name',
		state: 'Zustand',
		role: 'Rolle',
		channels: 'Sender',
		clients: 'Zuschauer',
		slots: 'Anbieter-Verbindungen',
		cpu: 'Prozessoren',
		behind: 'Fehlende Änderungen',
		clock: 'Uhr',
		version: 'Version',
		seen: 'Zuletzt gesehen',
	},
	own: 'antwortet gerade',
	writer: 'schreibt die Konfiguration',
	actions: 'Aktionen',
	drain: 'Leeren',
	drainAsk: (name) => `„${name}“ leeren?`,
	drainText:
		'Seine Sender und Aufgaben ziehen auf andere Knoten um, und Lastverteiler schicken ihm keine neuen Zuschauer. Vorhandene behalten ihre Streams eine Zeit lang: zwei Stunden, wenn der Betreiber nichts anderes festgelegt hat.',
	drained: (name) => `${name} wird geleert.`,
	endDrain: 'Leeren beenden',
	drainEnded: (name) => `${name} darf wieder Sender öffnen.`,
	drainEnds: (time) => `Zuschauer bis ${time}`,
	clock: (ms) => (ms === 0 ? '0 ms' : `${ms < 0 ? '−' : '+'}${millis(Math.abs(ms))}`),
	written: (version) => `Die Knoten schreiben Version ${String(version)} ihrer Daten.`,
	readLater: (version) => `Alle können Version ${String(version)} lesen.`,
	reads: (oldest, newest) =>
		oldest === newest ? `Daten ${String(newest)}` : `Daten ${String(oldest)} bis ${String(newest)}`,
	unfit: 'muss aktualisiert werden',
	finalize: 'Abschließen',
	finalizeAsk: (version) => `Alle Knoten Version ${String(version)} ihrer Daten schreiben lassen?`,
	finalizeText:
		'Danach können ältere Versionen des Gateways nicht mehr beitreten, und kein Knoten kann zu einer zurückkehren. Das lässt sich nicht rückgängig machen.',
	finalized: (version) => `Die Knoten schreiben jetzt Version ${String(version)} ihrer Daten.`,
	remove: 'Entfernen',
	removeAsk: (name) => `„${name}“ aus dem Cluster entfernen?`,
	removeText:
		'Andere Knoten lehnen sein Zertifikat fortan ab, und er stoppt. Um wieder beizutreten, braucht er ein neues Token.',
	removed: (name) => `${name} ist entfernt.`,
	add: 'Knoten hinzufügen',
	addFull: 'full: öffnet Quellen von Anbietern und bedient Zuschauer',
	addEdge: 'edge: bedient Zuschauer und hat keine Geheimnisse von Anbietern',
	addMake: 'Token erzeugen',
	addRun:
		'Legen Sie auf dem neuen Rechner den Abschnitt [cluster] der Konfiguration an, mit leerem Datenordner, und führen Sie dort diesen Befehl aus:',
	addCommand: 'Befehl',
	addOnce: 'Das Token gilt für einen Rechner und eine Stunde. Es wird nicht noch einmal angezeigt.',
	states: {
		joining: 'tritt bei',
		alive: 'Mitglied',
		draining: 'wird geleert',
		expired: 'antwortet nicht',
		left: 'ausgetreten',
		unknown: 'unbekannt',
	},
	roles: { full: 'full', edge: 'edge' },
	percent: (n) => `${number(n)} %`,
	never: 'nie',
};
