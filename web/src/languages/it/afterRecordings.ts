import { number, plural } from '$lib/i18n';
import type { afterText } from '../../pages/recordings/afterText';
import type { Texts } from '../catalogue';

const conversions = {
	queued: (format: string) => `sarà convertita in ${format}`,
	running: (format: string) => `in conversione in ${format}`,
	completed: (format: string) => format,
	failed: (format: string) => `non convertita in ${format}`,
};

export const afterRecordings: Texts<typeof afterText> = {
	title: 'Dopo una registrazione',
	remux: (status, format, reason) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(': '),
	container: 'Contenitore',
	containerHint:
		'Il transport stream resta finché il nuovo file non ha gli stessi flussi e la stessa durata.',
	containers: { none: 'come registrato (transport stream)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Scrivi accanto a ogni file una descrizione per i media server (NFO)',
	artwork: 'Salva accanto a ogni file un’immagine per i media server',
	mode: 'Le pubblicità trovate',
	modeHint: 'La registrazione resta com’è.',
	modes: { mark: 'vengono segnate', cut: 'vengono segnate e tolte in una copia accanto alla registrazione' },
	saved: 'Salvato.',
	commercials: 'Pubblicità',
	search: 'Cerca le pubblicità',
	searches: {
		queued: 'in coda',
		running: 'ricerca in corso',
		completed: 'trovate',
		none_found: 'nessuna trovata',
		failed: 'non riuscita',
	},
	breaks: (n, length) => plural(n, `1 interruzione, ${length}`, `${number(n)} interruzioni, ${length}`),
	columns: { start: 'Da', end: 'A', length: 'Durata' },
	cut: 'Copia senza pubblicità',
	cuts: { queued: 'in coda', running: 'in preparazione', completed: 'pronta', failed: 'non riuscita' },
	playCut: 'Riproduci la copia',
	saveCut: 'Scarica la copia',
	notSearched: 'Le pubblicità non sono ancora state cercate.',
	comskip: 'Pubblicità (comskip)',
	missing: 'Il programma comskip non è installato, oppure programs.comskip ne indica un altro.',
	enabled: 'Cerca le pubblicità dopo ogni registrazione',
	config: 'Configurazione',
	configHint: 'Righe di comskip.ini, per esempio detect_method=43. Vuoto: i valori di comskip.',
	upload: 'Leggi la configurazione da un file',
	uploaded: 'La configurazione è stata sostituita.',
};
