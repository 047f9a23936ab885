import type { text } from '../../pages/backups/text';
import type { Texts } from '../catalogue';

export const backups: Texts<typeof text> = {
	intro:
		'Eine Sicherung enthält die Konfiguration mit allen Benutzern, Sendern und Quellen sowie hochgeladene Dateien, aber keine Aufnahmen.',
	make: 'Sicherung erstellen',
	makeTitle: 'Sicherung erstellen',
	makeText:
		'Geheimnisse in einer Sicherung, etwa Zugangsdaten von Anbietern, sind verschlüsselt: mit der Passphrase, ohne sie mit der Schlüsseldatei dieser Installation.',
	passphrase: 'Passphrase',
	passphraseHint:
		'Damit lässt sich die Sicherung auf jedem Rechner wiederherstellen. Ohne die Passphrase kann es niemand. Leer: die Schlüsseldatei wird benutzt.',
	add: 'Sicherung aus einer Datei hinzufügen',
	addHint: 'Ein Archiv (.tar.gz), das dieses oder ein anderes Headwater erstellt hat.',
	uploading: 'Sicherung wird hochgeladen',
	checking: 'Sicherung wird geprüft',
	added: (name) => `${name} hinzugefügt.`,
	list: 'Sicherungen im Datenordner',
	columns: {
		name: 'Name',
		created: 'Erstellt',
		size: 'Größe',
		version: 'Version',
		secret: 'Wiederherstellbar mit',
		actions: 'Aktionen',
	},
	secrets: { passphrase: 'ihrer Passphrase', key_file: 'der Schlüsseldatei' },
	noBackup: 'keine Sicherung',
	none: 'Noch keine Sicherung',
	noneText: 'Erstellen Sie jetzt eine, und lassen Sie den Zeitplan täglich eine erstellen.',
	download: 'Herunterladen',
	downloadOf: (name) => `${name} herunterladen`,
	restore: 'Wiederherstellen',
	restoreOf: (name) => `${name} wiederherstellen`,
	deleteOf: (name) => `${name} löschen`,
	deleteTitle: (name) => `${name} löschen?`,
	deleteText: 'Sie lässt sich danach nicht wiederherstellen, außer Sie haben sie heruntergeladen.',
	deleted: 'Gelöscht.',
	restoreTitle: 'Sicherung wiederherstellen',
	restoreText: (name, made) =>
		`Alles kehrt zum Stand von ${name} zurück, erstellt ${made}. Spätere Änderungen gehen verloren, auch Benutzer und ihre Passwörter. Streams enden, wenn das Gateway neu startet.`,
	key: 'Inhalt der Schlüsseldatei',
	keyHint: 'Nur wenn eine andere Installation die Sicherung erstellt hat. Sonst leer lassen.',
	tasks: {
		make: {
			pending: 'Die Sicherung wartet',
			running: 'Die Sicherung wird erstellt',
			completed: 'Die Sicherung ist fertig.',
			failed: 'Die Sicherung wurde nicht erstellt',
		},
		restore: {
			pending: 'Die Wiederherstellung wartet',
			running: 'Die Sicherung wird geprüft und wiederhergestellt',
			completed: 'Die Sicherung ist wiederhergestellt.',
			failed: 'Die Sicherung wurde nicht wiederhergestellt. Nichts hat sich geändert',
		},
	},
	lost: 'Das Gateway kennt diese Aufgabe nicht mehr. Vielleicht hat es neu gestartet.',
	schedule: 'Zeitplan',
	scheduleText:
		'Sicherungen nach Zeitplan haben keine Passphrase: Bewahren Sie auch die Schlüsseldatei dieser Installation auf.',
	enabled: 'Sicherungen nach Zeitplan erstellen',
	frequency: 'Wie oft',
	frequencies: { daily: 'jeden Tag', weekly: 'jede Woche' },
	time: 'Uhrzeit',
	timeHint: 'Stunden und Minuten in der Zeitzone der Einstellungen, etwa 03:30.',
	day: 'Tag',
	retention: 'Aufbewahrte Sicherungen nach Zeitplan',
	retentionHint: '0 behält alle. Andere entfernt der Zeitplan nie.',
	cron: 'Zeitplan (cron)',
	cronHint:
		'Minute, Stunde, Monatstag, Monat, Wochentag. Ersetzt die drei Felder darüber, außer es ist leer.',
	saved: 'Gespeichert.',
};
