import type { afterText } from '../../pages/recordings/afterText';
import type { Texts } from '../catalogue';
import { counted } from './nouns';

const conversions = {
	queued: (format: string) => `zostanie przekonwertowane do ${format}`,
	running: (format: string) => `konwersja do ${format} w toku`,
	completed: (format: string) => format,
	failed: (format: string) => `nie przekonwertowano do ${format}`,
};

export const afterRecordings: Texts<typeof afterText> = {
	title: 'Po nagraniu',
	remux: (status, format, reason) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(': '),
	container: 'Kontener',
	containerHint: 'Strumień transportowy zostaje, dopóki nowy plik nie ma tych samych strumieni i długości.',
	containers: { none: 'jak nagrano (strumień transportowy)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Zapisuj przy każdym pliku opis dla serwerów multimediów (NFO)',
	artwork: 'Zapisuj przy każdym pliku obraz dla serwerów multimediów',
	mode: 'Znalezione reklamy',
	modeHint: 'Nagranie pozostaje bez zmian.',
	modes: { mark: 'są oznaczane', cut: 'są oznaczane i pomijane w kopii obok nagrania' },
	saved: 'Zapisano.',
	commercials: 'Reklamy',
	search: 'Szukaj reklam',
	searches: {
		queued: 'czeka na swoją kolej',
		running: 'wyszukiwanie',
		completed: 'znaleziono',
		none_found: 'nie znaleziono',
		failed: 'niepowodzenie',
	},
	breaks: (n, length) => `${counted(n, 'przerwa', 'przerwy', 'przerw')}, ${length}`,
	columns: { start: 'Od', end: 'Do', length: 'Długość' },
	cut: 'Kopia bez reklam',
	cuts: {
		queued: 'czeka na swoją kolej',
		running: 'w przygotowaniu',
		completed: 'gotowa',
		failed: 'niepowodzenie',
	},
	playCut: 'Odtwórz kopię',
	saveCut: 'Pobierz kopię',
	notSearched: 'Jeszcze nie szukano reklam.',
	comskip: 'Reklamy (comskip)',
	missing: 'Program comskip nie jest zainstalowany albo programs.comskip wskazuje inny.',
	enabled: 'Szukaj reklam po każdym nagraniu',
	config: 'Konfiguracja',
	configHint: 'Wiersze comskip.ini, np. detect_method=43. Puste: wartości programu comskip.',
	upload: 'Wczytaj konfigurację z pliku',
	uploaded: 'Konfigurację zastąpiono.',
};
