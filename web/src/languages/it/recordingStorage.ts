import type { storageText } from '../../pages/recordings/storageText';
import type { Texts } from '../catalogue';
import { nRecordings } from './nouns';

const none = 'Vuoto: nessun limite.';

export const recordingStorage: Texts<typeof storageText> = {
	title: 'Spazio',
	limitsTitle: 'Limiti',
	limitsText: 'Tra le registrazioni finite si eliminano prima le più vecchie. Quelle protette restano.',
	limits: {
		quota_bytes: ['Dimensione di tutte le registrazioni, in GiB', none],
		user_quota_bytes: ['Dimensione delle registrazioni di ogni utente, in GiB', none],
		retention_free_bytes: ['Spazio da lasciare libero sul disco, in GiB', none],
		retention_days: ['Giorni di conservazione delle registrazioni', 'Vuoto: finché c’è spazio.'],
		retention_count: ['Registrazioni da conservare', none],
	},
	saved: 'Salvato.',
	facts: { folder: 'Cartella', available: 'Spazio libero', used: 'In uso', protected: 'Protette' },
	unknown: 'sconosciuto',
	used: (size, n) => `${size}, ${nRecordings(n)}`,
	unmounted: 'La cartella non è montata',
	unmountedText:
		'Manca il file .headwater-recordings. Non si registra né si elimina nulla finché il disco non torna; l’elenco delle registrazioni resta.',
	full: 'Il disco è quasi pieno',
	fullText:
		'Nessuna registrazione si avvia. Elimina registrazioni, o imposta qui sotto limiti che eliminano le vecchie.',
	users: 'Utenti',
	columns: { user: 'Utente', recordings: 'Registrazioni', used: 'In uso', quota: 'Limite' },
	nobody: 'nessun utente',
	noQuota: 'nessun limite',
	ofQuota: (share, quota) => `${share} di ${quota}`,
	isFull: 'pieno',
	connections: 'Connessioni',
	reserve: 'Minuti prima di una registrazione in cui la connessione è riservata',
	reserveHint: 'In questo tempo non va a nuovi spettatori. 0: nessuna riserva.',
	disconnect: 'Le registrazioni possono disconnettere spettatori',
	disconnectHint: 'Se altrimenti un programma non ottiene una connessione.',
	settings: 'Altre impostazioni delle registrazioni',
};
