import { number } from '$lib/i18n';
import type { text } from '../../pages/common/text';
import type { Texts } from '../catalogue';

export const shared: Texts<typeof text> = {
	xtreamTitle: 'Aplikacje, które pytają o serwer, nazwę użytkownika i hasło',
	server: 'Serwer',
	username: 'Nazwa użytkownika',
	password: 'Hasło',
	playlistTitle: 'Odtwarzacze, które przyjmują adresy',
	kinds: {
		xtream: 'Serwer',
		m3u: 'Lista odtwarzania (M3U)',
		xmltv: 'Przewodnik (XMLTV)',
		m3u_with_key: 'Lista z kluczem API',
		xmltv_with_key: 'Przewodnik z kluczem API',
		recordings: 'Nagrania (M3U)',
		recordings_guide: 'Przewodnik nagrań (XMLTV)',
		tuner: 'Tuner dla serwerów multimediów',
	},
	ofProfile: (kind, profile) => `${kind}, ${profile}`,
	holdsPassword: 'Te adresy zawierają hasło. Kto ma jeden z nich, może oglądać.',
	withKeyTitle: 'Adresy, które wymagają nagłówka',
	withKey: (header) => `Programy wysyłają klucz API w nagłówku ${header}.`,
	loopback: (url) =>
		`${url} działa tylko z tej maszyny. Otwórz tę stronę pod adresem maszyny w Twojej sieci albo ustaw adres publiczny w ustawieniach.`,
	allowNetworks: 'Zmień dozwolone sieci',
	favourite: (name) => `Ulubione: ${name}`,
	sleep: {
		title: 'Wyłącznik czasowy',
		after: 'Strumienie kończą się po',
		start: 'Uruchom',
		change: 'Zmień',
		remove: 'Usuń wyłącznik',
		endsAt: (time, when) => `Wszystkie strumienie skończą się o ${time} (${when}).`,
		isSet: 'Wyłącznik czasowy jest ustawiony.',
		isRemoved: 'Wyłącznik czasowy został usunięty.',
	},
	batch: (done, of) => `Partie: ${number(done)} z ${number(of)}`,
	stoppedAfter: (done, of, reason) => `Ukończone partie: ${number(done)} z ${number(of)}, potem: ${reason}`,
	undone: 'Cofnięto.',
	pagesOf: (label) => `Strony: ${label}`,
	older: 'Starsze',
	newer: 'Nowsze',
	range: (from, until, all) => `${number(from)}–${number(until)} z ${number(all)}`,
	order: {
		moveUp: (name) => `Przesuń ${name} w górę`,
		moveDown: (name) => `Przesuń ${name} w dół`,
		moveTo: (name) => `Pozycja ${name}`,
		movedTo: (name, n) => `${name} jest na pozycji ${number(n)}`,
		shown: (n, of) => `${number(n)} z ${number(of)}`,
	},
};
