import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/history/text';
import type { Texts } from '../catalogue';

export const history: Texts<typeof text> = {
	intro:
		'Misurata ogni dieci secondi e conservata su questo gateway: ogni cinque minuti per due giorni, ogni ora per 60 giorni.',
	introNode: (node) =>
		`Misurata ogni dieci secondi sul nodo ${node}, che conserva la propria cronologia: ogni cinque minuti per due giorni, ogni ora per 60 giorni.`,
	scope: 'Mostra',
	scopes: {
		gateway: 'Tutto il gateway',
		account: 'Account',
		channel: 'Canale',
		stream: 'Flusso',
		user: 'Utente',
	},
	choose: {
		account: 'Scegli un account per vederne la cronologia.',
		channel: 'Scegli un canale per vederne la cronologia.',
		stream: 'Scegli un flusso per vederne la cronologia.',
		user: 'Scegli un utente per vederne la cronologia.',
	},
	streams: 'Flussi del canale',
	nobody: 'Nessuna scelta',
	range: 'Periodo',
	ranges: { '6h': '6 ore', '24h': '24 ore', '7d': '7 giorni', '60d': '60 giorni' },
	off: 'La cronologia è disattivata',
	offText: 'Non viene conservato nulla. Si attiva nelle impostazioni.',
	offUser: 'Non viene conservata la cronologia degli utenti',
	offUserText: 'Bitrate e spettatori di ogni utente sono conservati solo se le impostazioni lo prevedono.',
	toSettings: 'Apri le impostazioni',
	nothing: 'Ancora nessun dato',
	nothingText: 'I primi valori compaiono dopo un minuto.',
	charts: {
		rate: 'Bitrate',
		viewers: 'Spettatori',
		slots: 'Connessioni in uso',
		health: 'Tempo di riproduzione',
		failovers: 'Cambi di sorgente',
		recordings: 'Disco delle registrazioni',
	},
	series: {
		in: 'Ricevuto',
		out: 'Inviato',
		viewers: 'Media',
		viewersMax: 'Picco',
		slots: 'In uso',
		limit: 'Limite',
		recordings: 'Dimensione',
	},
	highest: (value) => `massimo ${value}`,
	said: (chart, parts) => `${chart}: ${parts}.`,
	seriesSaid: (name, newest, highest) => `${name} ${newest}, al massimo ${highest}`,
	unknown: 'sconosciuto',
	noLimit: 'senza limite',
	failovers: (n) => `${number(n)} ${plural(n, 'cambio', 'cambi')} di sorgente`,
	losses: (n) => `${number(n)} ${plural(n, 'errore', 'errori')} di flussi`,
	playing: (share) => `in riproduzione per il ${share} del tempo d’uso`,
	notUsed: 'non in uso',
	asTable: 'Come tabella',
	time: 'Ora',
};
