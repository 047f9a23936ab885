import type { text } from '../../pages/backups/text';
import type { Texts } from '../catalogue';

export const backups: Texts<typeof text> = {
	intro:
		'Un backup contiene la configurazione con tutti gli utenti, i canali e le sorgenti, e i file caricati. Non contiene le registrazioni.',
	make: 'Crea backup',
	makeTitle: 'Crea un backup',
	makeText:
		'I segreti di un backup, come gli accessi ai fornitori, sono cifrati: con la passphrase o, senza, con il file chiave di questa installazione.',
	passphrase: 'Passphrase',
	passphraseHint:
		'Con la passphrase il backup si può ripristinare su qualsiasi macchina; se si perde, nessuno può ripristinarlo. Lascia vuoto per usare il file chiave.',
	add: 'Aggiungi un backup da file',
	addHint: 'Un archivio (.tar.gz) creato da questo o da un altro Headwater.',
	uploading: 'Caricamento del backup',
	checking: 'Verifica del backup',
	added: (name) => `${name} aggiunto.`,
	list: 'Backup nella cartella dati',
	columns: {
		name: 'Nome',
		created: 'Creato',
		size: 'Dimensione',
		version: 'Versione',
		secret: 'Si ripristina con',
		actions: 'Azioni',
	},
	secrets: { passphrase: 'la sua passphrase', key_file: 'il file chiave' },
	noBackup: 'non è un backup',
	none: 'Ancora nessun backup',
	noneText: 'Creane uno adesso e lascia che la pianificazione ne crei uno al giorno.',
	download: 'Scarica',
	downloadOf: (name) => `Scarica ${name}`,
	restore: 'Ripristina',
	restoreOf: (name) => `Ripristina ${name}`,
	deleteOf: (name) => `Elimina ${name}`,
	deleteTitle: (name) => `Eliminare ${name}?`,
	deleteText: 'Poi non si potrà più ripristinare, a meno che tu non l’abbia scaricato.',
	deleted: 'Eliminato.',
	restoreTitle: 'Ripristina un backup',
	restoreText: (name, made) =>
		`Tutto torna a ${name}, creato il ${made}. Le modifiche successive andranno perse, anche utenti e password. I flussi terminano al riavvio del gateway.`,
	key: 'Contenuto del file chiave',
	keyHint: 'Solo se il backup viene da un’altra installazione. Altrimenti lascia vuoto.',
	tasks: {
		make: {
			pending: 'Il backup è in attesa',
			running: 'Creazione del backup',
			completed: 'Il backup è pronto.',
			failed: 'Il backup non è stato creato',
		},
		restore: {
			pending: 'Il ripristino è in attesa',
			running: 'Verifica e ripristino del backup',
			completed: 'Il backup è stato ripristinato.',
			failed: 'Il backup non è stato ripristinato. Non è cambiato nulla',
		},
	},
	lost: 'Il gateway non conosce più questa operazione. Forse è stato riavviato.',
	schedule: 'Pianificazione',
	scheduleText:
		'I backup pianificati non hanno passphrase: conserva anche il file chiave di questa installazione.',
	enabled: 'Crea backup pianificati',
	frequency: 'Frequenza',
	frequencies: { daily: 'ogni giorno', weekly: 'ogni settimana' },
	time: 'Ora',
	timeHint: 'Ore e minuti nel fuso orario delle impostazioni, per esempio 03:30.',
	day: 'Giorno',
	retention: 'Backup pianificati da conservare',
	retentionHint: '0 li conserva tutti. Gli altri backup non vengono mai rimossi dalla pianificazione.',
	cron: 'Pianificazione (cron)',
	cronHint:
		'Minuto, ora, giorno del mese, mese, giorno della settimana. Se compilato, sostituisce i tre campi precedenti.',
	saved: 'Salvato.',
};
