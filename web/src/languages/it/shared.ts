import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/common/text';
import type { Texts } from '../catalogue';

export const shared: Texts<typeof text> = {
	xtreamTitle: 'App che chiedono server, nome utente e password',
	server: 'Server',
	username: 'Nome utente',
	password: 'Password',
	playlistTitle: 'Lettori che accettano indirizzi',
	kinds: {
		xtream: 'Server',
		m3u: 'Playlist (M3U)',
		xmltv: 'Guida (XMLTV)',
		m3u_with_key: 'Playlist con chiave API',
		xmltv_with_key: 'Guida con chiave API',
		recordings: 'Registrazioni (M3U)',
		recordings_guide: 'Guida delle registrazioni (XMLTV)',
		tuner: 'Tuner per media server',
	},
	ofProfile: (kind, profile) => `${kind}, ${profile}`,
	holdsPassword: 'Questi indirizzi contengono la password. Chi ne ha uno può guardare.',
	withKeyTitle: 'Indirizzi che richiedono un header',
	withKey: (header) => `I programmi inviano la chiave API nell’header ${header}.`,
	loopback: (url) =>
		`${url} è raggiungibile solo da questa macchina. Apri questa pagina con l’indirizzo della macchina nella tua rete, o imposta l’indirizzo pubblico nelle impostazioni.`,
	allowNetworks: 'Modifica le reti consentite',
	favourite: (name) => `Preferito: ${name}`,
	sleep: {
		title: 'Timer di spegnimento',
		after: 'I flussi terminano dopo',
		start: 'Avvia',
		change: 'Modifica',
		remove: 'Rimuovi il timer',
		endsAt: (time, when) => `Tutti i flussi terminano alle ${time} (${when}).`,
		isSet: 'Il timer di spegnimento è impostato.',
		isRemoved: 'Il timer di spegnimento è stato rimosso.',
	},
	batch: (done, of) => `${number(done)} di ${plural(of, '1 blocco', `${number(of)} blocchi`)}`,
	stoppedAfter: (done, of, reason) =>
		`Completati ${number(done)} di ${plural(of, '1 blocco', `${number(of)} blocchi`)}, poi: ${reason}`,
	undone: 'Annullato.',
	pagesOf: (label) => `Pagine: ${label}`,
	older: 'Precedenti',
	newer: 'Successive',
	range: (from, until, all) => `${number(from)}–${number(until)} di ${number(all)}`,
	order: {
		moveUp: (name) => `Sposta ${name} in su`,
		moveDown: (name) => `Sposta ${name} in giù`,
		moveTo: (name) => `Posizione di ${name}`,
		movedTo: (name, n) => `${name} è in posizione ${number(n)}`,
		shown: (n, of) => `${number(n)} di ${number(of)}`,
	},
};
