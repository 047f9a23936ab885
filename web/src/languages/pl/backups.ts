import type { text } from '../../pages/backups/text';
import type { Texts } from '../catalogue';

export const backups: Texts<typeof text> = {
	intro:
		'Kopia zapasowa zawiera konfigurację ze wszystkimi użytkownikami, kanałami i źródłami oraz przesłane pliki. Nie zawiera nagrań.',
	make: 'Utwórz kopię',
	makeTitle: 'Utwórz kopię zapasową',
	makeText:
		'Tajne dane w kopii, np. dane logowania u dostawców, są zaszyfrowane hasłem kopii, a bez niego plikiem klucza tej instalacji.',
	passphrase: 'Hasło kopii',
	passphraseHint:
		'Z nim kopię można przywrócić na dowolnej maszynie. Bez tego hasła nikt jej nie przywróci. Zostaw puste, aby użyć pliku klucza.',
	add: 'Dodaj kopię z pliku',
	addHint: 'Archiwum (.tar.gz) utworzone przez ten lub inny Headwater.',
	uploading: 'Przesyłanie kopii',
	checking: 'Sprawdzanie kopii',
	added: (name) => `Dodano ${name}.`,
	list: 'Kopie w folderze danych',
	columns: {
		name: 'Nazwa',
		created: 'Utworzono',
		size: 'Rozmiar',
		version: 'Wersja',
		secret: 'Do przywrócenia',
		actions: 'Działania',
	},
	secrets: { passphrase: 'hasło kopii', key_file: 'plik klucza' },
	noBackup: 'to nie kopia zapasowa',
	none: 'Brak kopii zapasowych',
	noneText: 'Utwórz kopię teraz i włącz harmonogram, aby powstawały codziennie.',
	download: 'Pobierz',
	downloadOf: (name) => `Pobierz ${name}`,
	restore: 'Przywróć',
	restoreOf: (name) => `Przywróć ${name}`,
	deleteOf: (name) => `Usuń ${name}`,
	deleteTitle: (name) => `Usunąć ${name}?`,
	deleteText: 'Potem nie będzie można jej przywrócić, chyba że została pobrana.',
	deleted: 'Usunięto.',
	restoreTitle: 'Przywróć kopię zapasową',
	restoreText: (name, made) =>
		`Wszystko wróci do stanu ${name}, utworzono ${made}. Późniejsze zmiany przepadną, także użytkownicy i hasła. Strumienie zostaną przerwane przy ponownym uruchomieniu bramy.`,
	key: 'Zawartość pliku klucza',
	keyHint: 'Tylko jeśli kopia pochodzi z innej instalacji. W innym razie zostaw puste.',
	tasks: {
		make: {
			pending: 'Kopia czeka',
			running: 'Tworzenie kopii',
			completed: 'Kopia jest gotowa.',
			failed: 'Nie utworzono kopii',
		},
		restore: {
			pending: 'Przywracanie czeka',
			running: 'Sprawdzanie i przywracanie kopii',
			completed: 'Kopia została przywrócona.',
			failed: 'Nie przywrócono kopii. Nic się nie zmieniło',
		},
	},
	lost: 'Brama nie zna już tego zadania. Mogła zostać uruchomiona ponownie.',
	schedule: 'Harmonogram',
	scheduleText: 'Kopie z harmonogramu nie mają hasła: zachowaj też plik klucza tej instalacji.',
	enabled: 'Twórz kopie według harmonogramu',
	frequency: 'Jak często',
	frequencies: { daily: 'codziennie', weekly: 'co tydzień' },
	time: 'Godzina',
	timeHint: 'Godziny i minuty w strefie czasowej z ustawień, np. 03:30.',
	day: 'Dzień',
	retention: 'Liczba zachowywanych kopii z harmonogramu',
	retentionHint: '0 zachowuje wszystkie. Innych harmonogram nigdy nie usuwa.',
	cron: 'Harmonogram (cron)',
	cronHint:
		'Minuta, godzina, dzień miesiąca, miesiąc, dzień tygodnia. Jeśli niepusty, zastępuje trzy pola powyżej.',
	saved: 'Zapisano.',
};
