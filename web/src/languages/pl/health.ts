import { number } from '$lib/i18n';
import type { text } from '../../pages/health/text';
import type { Texts } from '../catalogue';
import { counted } from './nouns';

export const health: Texts<typeof text> = {
	good: 'Wszystko działa',
	problems: (n) => counted(n, 'problem', 'problemy', 'problemów', 'problemu'),
	confinement: 'Izolacja, której brakuje tej maszynie',
	confinementHint:
		'Wtyczki i programy działają bez tych ograniczeń. Przy każdym jest wiersz, który je dodaje.',
	parts: { landlock: 'Pliki i porty (Landlock)', control_group: 'Pamięć i procesory (grupy kontrolne)' },
	overview: 'Przegląd',
	version: 'Wersja',
	channels: 'Kanały',
	live: 'Odtwarzane kanały',
	viewers: 'Widzowie',
	accounts: 'Aktywne źródła',
	failing: 'Źródła z błędami',
	expiring: 'Wygasające logowania',
	disk: 'Wolne miejsce na dysku',
	diskOf: (free, all) => `${free} z ${all}`,
	store: 'Magazyn danych',
	storeOf: (records, disk) => `${records} danych, ${disk} na dysku`,
	readOnly: 'Zmiany są odrzucane.',
	nodes: 'Węzły klastra',
	nodesOf: (members, all) => `członkowie: ${number(members)} z ${number(all)}`,
	log: 'Dziennik',
	logTo: 'Zobacz dziennik',
	logLevel: 'Wiersze',
	logLevels: {
		error: 'Błędy',
		warn: 'Ostrzeżenia i błędy',
		info: 'Wszystkie oprócz szczegółów',
		debug: 'Wszystkie',
	},
	logSearch: 'Szukaj w dzienniku',
	noLog: 'Brak takich wierszy od uruchomienia.',
	time: 'Czas',
	level: 'Poziom',
	message: 'Komunikat',
	warning: 'ostrzeżenie',
	error: 'błąd',
	fix: 'Przejdź do rozwiązania',
};
