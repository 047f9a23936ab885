import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/settings/text';
import type { Texts } from '../catalogue';

/** Label and explanation of a setting. */
type Said = readonly [label: string, hint?: string];

const networks = 'Sieci oddzielone przecinkami, np. 192.168.0.0/16. Także: all, private, loopback.';
const seconds = 'W sekundach.';
const inBytes = 'W bajtach.';
const cleaned = 'Bez oznaczeń języka i jakości, np. EN - i [4K]. Nazwa od dostawcy jest zachowywana.';
const perLine = 'Po jednym w wierszu. Działa, jeśli wybrano wyżej.';
const fields =
	'Foldery i nazwa, z {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} i {id}.';
const classes: Record<string, string> = {
	ui: 'Interfejs i API',
	streams: 'Strumienie',
	xc_api: 'Aplikacje odtwarzaczy (panel)',
	m3u_epg: 'Listy i przewodniki',
	tuner: 'Tuner',
	metrics: 'Metryki',
};

const said: Record<string, Said> = {
	connect_timeout: ['Czas na połączenie z dostawcą', seconds],
	first_packet_timeout: ['Czas do pierwszych danych strumienia', seconds],
	stall_timeout: ['Czas bez danych, po którym źródło uznaje się za utracone', seconds],
	silence_suspected_after: ['Czas bez danych, po którym obok otwierany jest inny strumień', seconds],
	picture_timeout: [
		'Czas bez obrazu, po którym uznaje się go za utracony',
		'W sekundach programu. 0: nigdy.',
	],
	sound_timeout: ['Czas bez dźwięku, po którym uznaje się go za utracony', 'W sekundach programu. 0: nigdy.'],
	buffering_timeout: ['Czas pomiaru prędkości źródła', seconds],
	random_access_wait: ['Czas szukania w nowym źródle obrazu na początek', seconds],
	start_lead: [
		'Część programu, którą nowe źródło może powtórzyć, aby zacząć od klatki kluczowej',
		'W sekundach. Potem widzowie są opóźnieni najwyżej o tyle.',
	],
	start_timeout: ['Czas oczekiwania widza na start kanału', seconds],
	give_up_after: ['Czas szukania źródła przez kanał, zanim się zakończy', seconds],
	channel_shutdown_delay: ['Czas działania kanału bez widzów', seconds],
	new_client_behind_seconds: ['Odległość od najnowszych danych, w której zaczyna widz', seconds],
	ring_seconds: ['Minione dane przechowywane przez kanał, w czasie', seconds],
	ring_bytes: ['Minione dane przechowywane przez kanał, w rozmiarze', inBytes],
	ring_gop_bytes: ['Rozmiar ostatniej grupy obrazów, zawsze zachowywanej', inBytes],
	recording_lead_seconds: ['Wyprzedzenie przy odczycie źródła szybszego niż czas rzeczywisty', seconds],
	hls_height_max: ['Największa wysokość obrazu strumieni HLS z wariantami', 'W liniach. Puste: dowolna.'],
	hls_bits_per_second_max: [
		'Największa przepływność strumieni HLS z wariantami',
		'W bitach na sekundę. Puste: dowolna.',
	],
	ring_budget_bytes: [
		'Pamięć na minione dane wszystkich kanałów',
		'W bajtach. Puste: jedna czwarta pamięci.',
	],
	slow_client_limit: ['Ile razy na minutę widz może się opóźnić'],
	return_to_preferred_after: [
		'Czas do próby powrotu do pierwszego strumienia',
		'W sekundach. Puste: bez powrotu.',
	],
	at_limit: ['Gdy widz zmienia kanał, a konto jest pełne'],
	transcoders_max: ['Programy naraz dla profili wyjściowych', '0: żadne.'],
	default_stream_profile: ['Profil strumienia'],
	default_user_agent: ['User agent'],
	default_output_profile: ['Profil wyjściowy'],
	reason_on_screen: ['Klip z powodem zamiast błędu przy odmowie strumienia'],
	time_zone: ['Strefa czasowa', 'Np. Europe/Warsaw. Używają jej harmonogramy.'],
	preferred_region: [
		'Kraj kanałów, które go nie podają',
		'Dwie litery, np. PL. Używany przy dopasowaniu do przewodnika.',
	],
	multicast_interface: [
		'Interfejs sieciowy dla multicastu',
		'Nazwa lub adres, dla grup, których adres go nie podaje. Puste: wybiera system.',
	],
	udp_receive_buffer_bytes: ['Bufor odbioru każdego źródła UDP lub RTP', inBytes],
	epg_match_mode: ['Jak nazwy są porównywane z przewodnikiem'],
	epg_match_ignore_prefixes: ['Początki nazw, które się nie liczą', perLine],
	epg_match_ignore_suffixes: ['Końcówki nazw, które się nie liczą', perLine],
	epg_match_ignore_custom: ['Części nazw, które się nie liczą', perLine],
	epg_match_threshold: ['Pewność, od której dopasowanie jest używane', 'W procentach, od 50 do 100.'],
	epg_match_after_refresh: ['Dopasowuj kanały po każdym odświeżeniu przewodnika'],
	epg_placeholders: [
		'Zastępcze programy dla kanałów bez przewodnika',
		'Telewizory i serwery multimediów pokazują wiele kanałów tylko wtedy, gdy mają programy.',
	],
	epg_placeholder_title: ['Tytuł zastępczych programów', '{channel_name} to nazwa kanału.'],
	epg_placeholder_description: [
		'Opis zastępczych programów',
		'{channel_name} to nazwa kanału. Puste: bez opisu.',
	],
	epg_placeholder_minutes: ['Długość zastępczego programu', 'W minutach, od 5 do 1440.'],
	panel_rows: ['Filmy w aplikacjach odtwarzaczy'],
	strm_enabled: ['Planowy eksport filmów i seriali jako plików STRM'],
	strm_folder: ['Folder eksportu', 'Ścieżka bezwzględna.'],
	strm_user: [
		'Użytkownik, którego tytuły są eksportowane',
		'Odtwarzają się z hasłem odtwarzacza tego użytkownika.',
	],
	strm_nfo: ['Opisy przy eksportowanych plikach (NFO)'],
	strm_cron_expression: [
		'Harmonogram eksportu (cron)',
		'Minuta, godzina, dzień miesiąca, miesiąc, dzień tygodnia.',
	],
	log_level: [
		'Poziom dziennika',
		'error, warn, info, debug lub trace; także według części, np. info,actors=debug.',
	],
	login_password_for_players: ['Odtwarzacze mogą używać hasła logowania'],
	public_url: [
		'Adres publiczny',
		'Adres, pod którym klienci osiągają bramę, jeśli nie jest tym, którego używają.',
	],
	adult_without_user: ['Dostęp bez użytkownika obejmuje kanały dla dorosłych'],
	schedule_enabled: ['Kopie zapasowe według harmonogramu'],
	schedule_frequency: ['Jak często'],
	schedule_time: ['Godzina', 'Godziny i minuty, np. 03:30.'],
	schedule_day_of_week: ['Dzień kopii tygodniowych', '0 to niedziela.'],
	retention_count: ['Liczba zachowywanych kopii z harmonogramu', '0 zachowuje wszystkie.'],
	schedule_cron_expression: [
		'Harmonogram (cron)',
		'Minuta, godzina, dzień miesiąca, miesiąc, dzień tygodnia. Zastępuje trzy pola powyżej.',
	],
	tuner_count: ['Strumienie oferowane przez tuner naraz'],
	friendly_name: ['Nazwa tunera'],
	device_id: ['Identyfikator tunera', 'Litery, cyfry i łączniki.'],
	terminate_on_limit_exceeded: [
		'Przy limicie kończ inny strumień użytkownika',
		'W innym razie nowy jest odrzucany.',
	],
	terminate_oldest: ['Kończ najstarszy', 'W innym razie najnowszy.'],
	prioritize_single_client_channels: ['Najpierw kończ strumienie, których nikt inny nie ogląda'],
	tv_template: ['Nazwa pliku odcinka', fields],
	tv_fallback_template: ['Nazwa pliku programu bez sezonu lub odcinka', fields],
	movie_template: ['Nazwa pliku filmu', fields],
	movie_fallback_template: ['Nazwa pliku filmu bez roku', fields],
	pre_offset_minutes: ['Minuty nagrywane przed początkiem', 'Dla nowych nagrań.'],
	post_offset_minutes: ['Minuty nagrywane po końcu', 'Dla nowych nagrań.'],
	quota_bytes: ['Rozmiar wszystkich nagrań', `${inBytes} 0: bez limitu.`],
	user_quota_bytes: ['Rozmiar nagrań każdego użytkownika', `${inBytes} 0: bez limitu.`],
	retention_days: ['Przez ile dni zachowywać nagrania', '0 zachowuje je.'],
	retention_free_bytes: ['Wolne miejsce na dysku nagrań', `${inBytes} 0: nic się dla niego nie usuwa.`],
	reserve_minutes: [
		'Ile minut przed nagraniem rezerwować połączenie',
		'Nowi widzowie go wtedy nie dostają. 0: bez rezerwacji.',
	],
	reserved_slots: [
		'Połączenia tylko dla nagrań',
		'Po jednym w wierszu: ID konta, liczba połączeń oraz opcjonalnie dni i godziny, np. 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: ['Nagrania mogą rozłączać widzów', 'Jeśli program nie dostanie połączenia inaczej.'],
	comskip_enabled: ['Szukaj reklam po każdym nagraniu', 'Programem comskip.'],
	comskip_mode: ['Znalezione reklamy', 'Nagranie pozostaje bez zmian. Kopia jest obok.'],
	remux: ['Kontener zakończonych nagrań', 'Bez niego pliki pozostają strumieniami transportowymi.'],
	write_nfo: ['Opisy dla serwerów multimediów przy nagraniach (NFO)'],
	write_artwork: ['Obrazy dla serwerów multimediów przy nagraniach'],
	recordings_in_players: [
		'Odtwarzacze widzą nagrania',
		'Jako filmy i seriale w aplikacjach odtwarzaczy oraz na liście nagrań.',
	],
	standard_users_record: ['Użytkownicy poziomu 1 nagrywają', 'Widzą i zmieniają tylko własne nagrania.'],
	ignore_same_channel_connections: ['Strumienie jednego kanału liczą się raz'],
};

/** Those whose names mean something else in their group. */
const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Zachowuj przeszłość kanałów (timeshift)', 'Dla kanałów bez własnego wyboru.'],
		hours: ['Ile godzin kanału zachowywać'],
		channel_bytes: ['Rozmiar przeszłości kanału', inBytes],
		total_bytes: [
			'Rozmiar przeszłości wszystkich kanałów',
			`${inBytes} Maleje, zanim zabraknie miejsca na nagrania.`,
		],
	},
	name_settings: {
		clean_movies: ['Oczyszczaj nazwy filmów', cleaned],
		clean_series: ['Oczyszczaj nazwy seriali', cleaned],
		clean_channels: ['Oczyszczaj nazwy kanałów', 'Tych z odświeżania i nowych.'],
		clean_accounts: ['Konta, których wszystkie nazwy są oczyszczane', 'Ich ID, po jednym w wierszu.'],
		keep_accounts: ['Konta, których nazwy pozostają bez zmian', 'Ich ID, po jednym w wierszu.'],
		patterns: [
			'Własne wzorce, stosowane najpierw',
			'Po jednym w wierszu: WZORZEC => ZAMIANA. Z movie:, series: lub channel: na początku tylko dla jednego rodzaju.',
		],
	},
	history_settings: {
		enabled: ['Przechowuj historię przepływności i widzów', 'W plikach stałego rozmiaru w folderze danych.'],
		users: ['Przechowuj historię każdego użytkownika', 'Wyłączenie usuwa to, co przechowano.'],
		user_days: ['Dni przechowywania historii użytkowników', 'Od 1 do 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Uzupełniaj filmy i seriale',
			'Po imporcie. Tytuły są rozpoznawane po identyfikatorze albo po nazwie i roku; jeśli pasuje kilka, nie jest brany żaden.',
		],
		tmdb_api_key: [
			'Twój klucz lub token dostępu',
			'Z Twojego konta w themoviedb.org. Nie jest ponownie pokazywany.',
		],
		completion_language: ['Język tytułów i opisów', 'Na przykład pl lub pl-PL.'],
		tmdb_address: ['Adres API', 'Inny tylko dla własnego serwera lustrzanego.'],
		completion_titles_per_run: [
			'Tytuły w jednym przebiegu',
			'Od 1 do 100000. Następny przebieg zrobi resztę.',
		],
	},
	dvr_settings: { retention_count: ['Liczba zachowywanych nagrań', '0 zachowuje wszystkie.'] },
};

/** Returns label and explanation of a setting of a group; an unknown one has its name. */
function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}: kto może się łączyć`, networks];
	if (part === 'anonymous') return [`${of}: kto może bez użytkownika`, networks];
	return said[name] ?? [name];
}

export const settings: Texts<typeof text> = {
	search: 'Szukaj ustawień',
	noMatch: 'Żadne ustawienie nie pasuje',
	sectionsLabel: 'Sekcje',
	sections: {
		system_settings: 'Ogólne',
		stream_settings: 'Strumienie',
		epg_settings: 'Przewodnik',
		dvr_settings: 'Nagrania',
		timeshift_settings: 'Przeszłość kanałów',
		library_settings: 'Filmy i seriale',
		name_settings: 'Nazwy',
		completion_settings: 'Uzupełnianie z TMDB',
		user_limit_settings: 'Limity użytkowników',
		tuner_settings: 'Tuner',
		network_access: 'Dostęp z sieci',
		history_settings: 'Historia',
		backup_settings: 'Kopie zapasowe',
		proxy_settings: 'Silnik',
	},
	advanced: 'Zaawansowane',
	advancedText: 'Pasują prawie wszędzie. Zmieniaj tylko, jeśli wiesz, po co.',
	toBackups: 'Twórz i przywracaj kopie zapasowe',
	saidOf,
	fallback: (value) => `Domyślnie: ${value}`,
	reset: (label) => `Przywróć domyślne: ${label}`,
	resetShort: 'Przywróć domyślne',
	own: 'zmienione',
	none: 'brak',
	yes: 'tak',
	no: 'nie',
	size: (n) => `${number(n)} (${bytes(n)})`,
	saved: 'Zapisano.',
	choices: {
		replace_own: 'zastąp połączenie tego samego urządzenia',
		refuse: 'odrzuć nowe połączenie',
		off: 'nigdy',
		unavailable: 'dla strumieni, które w tej chwili nie mogą ruszyć',
		all: 'także dla odrzuconych widzów i nieznanych kanałów',
		daily: 'codziennie',
		weekly: 'co tydzień',
		none: 'brak',
		watched: 'gdy ktoś ogląda',
		always: 'zawsze, zajmuje połączenie',
		mark: 'są oznaczane',
		cut: 'są oznaczane i pomijane w kopii',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'bez zmian',
		advanced: 'bez części podanych niżej',
		titles: 'jeden wpis na film',
		versions: 'jeden wpis na wersję',
	},
};
