import type { storageText } from '../../pages/recordings/storageText';
import type { Texts } from '../catalogue';
import { nRecordings } from './nouns';

const none = 'Puste: bez limitu.';

export const recordingStorage: Texts<typeof storageText> = {
	title: 'Miejsce',
	limitsTitle: 'Limity',
	limitsText: 'Z zakończonych nagrań najpierw usuwane są najstarsze. Chronione zostają.',
	limits: {
		quota_bytes: ['Rozmiar wszystkich nagrań, w GiB', none],
		user_quota_bytes: ['Rozmiar nagrań każdego użytkownika, w GiB', none],
		retention_free_bytes: ['Wolne miejsce zachowywane na dysku, w GiB', none],
		retention_days: ['Przez ile dni zachowywać nagrania', 'Puste: dopóki jest miejsce.'],
		retention_count: ['Liczba zachowywanych nagrań', none],
	},
	saved: 'Zapisano.',
	facts: { folder: 'Folder', available: 'Wolne miejsce', used: 'Zajęte', protected: 'Chronione' },
	unknown: 'nieznane',
	used: (size, n) => `${size}, ${nRecordings(n)}`,
	unmounted: 'Folder nie jest zamontowany',
	unmountedText:
		'Brakuje w nim pliku .headwater-recordings. Dopóki dysk nie wróci, nic nie jest nagrywane ani usuwane; lista nagrań zostaje.',
	full: 'Dysk jest prawie pełny',
	fullText: 'Żadne nagranie się nie zacznie. Usuń nagrania albo ustaw niżej limity, które usuwają stare.',
	users: 'Użytkownicy',
	columns: { user: 'Użytkownik', recordings: 'Nagrania', used: 'Zajęte', quota: 'Limit' },
	nobody: 'bez użytkownika',
	noQuota: 'bez limitu',
	ofQuota: (share, quota) => `${share} z ${quota}`,
	isFull: 'pełne',
	connections: 'Połączenia',
	reserve: 'Ile minut przed nagraniem rezerwować połączenie',
	reserveHint: 'Nowi widzowie go wtedy nie dostają. 0: bez rezerwacji.',
	disconnect: 'Nagrania mogą rozłączać widzów',
	disconnectHint: 'Jeśli program nie dostanie połączenia inaczej.',
	settings: 'Inne ustawienia nagrań',
};
