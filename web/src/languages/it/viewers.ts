import { number } from '$lib/i18n';
import type { text } from '../../pages/viewers/text';
import type { Texts } from '../catalogue';
import { nViewers } from './nouns';

export const viewers: Texts<typeof text> = {
	title: 'Spettatori',
	count: nViewers,
	selected: (n, of) => `${number(n)} di ${nViewers(of)}`,
	stale: (seconds) => `non aggiornato, ${number(seconds)} s`,
	search: 'Cerca utente, dispositivo, indirizzo, canale o programma',
	kind: 'Che cosa',
	anyKind: 'tutto',
	kinds: { live: 'canali in diretta', title: 'film e serie', past: 'archivio dei canali' },
	format: 'Formato',
	any: 'tutti',
	node: 'Nodo',
	columns: {
		user: 'Utente',
		device: 'Dispositivo',
		address: 'Indirizzo',
		name: 'Guarda',
		seconds: 'Da',
		rate: 'Bitrate',
		lost: 'Persi',
		format: 'Formato',
		node: 'Nodo',
		stop: 'Disconnetti',
	},
	anonymous: 'senza accesso',
	from: (time) => `del ${time}`,
	watching: (time) => `da ${time}`,
	formats: {
		mpegts: 'MPEG-TS',
		'hls-ts': 'HLS (MPEG-TS)',
		'hls-fmp4': 'HLS (fMP4)',
		'll-hls': 'HLS a bassa latenza',
		fmp4: 'fMP4',
		udp: 'uscita UDP',
		rtp: 'uscita RTP',
	},
	file: 'file',
	stop: (name) => `Disconnetti ${name}`,
	none: 'Nessuno sta guardando',
	noneText: 'Qui compaiono gli spettatori di canali, film, serie e archivio mentre guardano.',
	noneOfUser: 'Al momento questo utente non guarda nulla.',
	noMatch: 'Nessuno spettatore corrisponde',
	clear: 'Mostra tutti gli spettatori',
};
