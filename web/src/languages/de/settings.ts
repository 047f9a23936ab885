import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/settings/text';
import type { Texts } from '../catalogue';

/** Beschriftung und Erklärung einer Einstellung. */
type Said = readonly [label: string, hint?: string];

const networks = 'Netze, durch Kommas getrennt, etwa 192.168.0.0/16. Auch: all, private, loopback.';
const seconds = 'In Sekunden.';
const inBytes = 'In Byte.';
const cleaned =
	'Ohne Angaben zu Sprache und Qualität wie EN - und [4K]. Der Name beim Anbieter bleibt erhalten.';
const perLine = 'Einer je Zeile. Gilt, wenn oben gewählt.';
const fields =
	'Ordner und Name, mit {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} und {id}.';
const classes: Record<string, string> = {
	ui: 'Oberfläche und API',
	streams: 'Streams',
	xc_api: 'Player-Apps (Panel)',
	m3u_epg: 'Playlists und Programmführer',
	tuner: 'Tuner',
	metrics: 'Metriken',
};

const said: Record<string, Said> = {
	connect_timeout: ['Zeit für die Verbindung zu einem Anbieter', seconds],
	first_packet_timeout: ['Zeit bis zu den ersten Daten eines Streams', seconds],
	stall_timeout: ['Zeit ohne Daten, nach der eine Quelle als verloren gilt', seconds],
	silence_suspected_after: ['Zeit ohne Daten, nach der ein weiterer Stream daneben geöffnet wird', seconds],
	picture_timeout: ['Zeit ohne Bild, nach der es als verloren gilt', 'In Sekunden der Sendung. 0: nie.'],
	sound_timeout: ['Zeit ohne Ton, nach der er als verloren gilt', 'In Sekunden der Sendung. 0: nie.'],
	buffering_timeout: ['Zeit, über die das Tempo einer Quelle gemessen wird', seconds],
	random_access_wait: ['Zeit, in der eine neue Quelle nach einem ersten Bild durchsucht wird', seconds],
	start_lead: [
		'Teil der Sendung, den eine neue Quelle wiederholen darf, um mit einem Keyframe zu beginnen',
		'In Sekunden. Zuschauer sind danach höchstens so viel später.',
	],
	start_timeout: ['Zeit, die ein Zuschauer auf einen startenden Sender wartet', seconds],
	give_up_after: ['Zeit, die ein Sender eine Quelle sucht, bevor er endet', seconds],
	channel_shutdown_delay: ['Zeit, die ein Sender ohne Zuschauer weiterläuft', seconds],
	new_client_behind_seconds: ['Abstand zu den neuesten Daten, mit dem ein Zuschauer beginnt', seconds],
	ring_seconds: ['Vergangene Daten, die ein Sender behält, als Zeit', seconds],
	ring_bytes: ['Vergangene Daten, die ein Sender behält, als Größe', inBytes],
	ring_gop_bytes: ['Größe der letzten Bildgruppe, die immer behalten wird', inBytes],
	recording_lead_seconds: ['Vorsprung beim Lesen einer Quelle, die schneller als Echtzeit ist', seconds],
	hls_height_max: ['Maximale Bildhöhe von HLS-Streams mit Varianten', 'In Zeilen. Leer: beliebig.'],
	hls_bits_per_second_max: [
		'Maximale Bitrate von HLS-Streams mit Varianten',
		'In Bit pro Sekunde. Leer: beliebig.',
	],
	ring_budget_bytes: [
		'Speicher für die vergangenen Daten aller Sender',
		'In Byte. Leer: ein Viertel des Arbeitsspeichers.',
	],
	slow_client_limit: ['Wie oft pro Minute ein Zuschauer zurückfallen darf'],
	return_to_preferred_after: [
		'Zeit, nach der die Rückkehr zum ersten Stream versucht wird',
		'In Sekunden. Leer: keine Rückkehr.',
	],
	at_limit: ['Wenn ein Zuschauer den Sender wechselt und das Konto voll ist'],
	transcoders_max: ['Gleichzeitige Programme für Ausgabeprofile', '0: keine.'],
	default_stream_profile: ['Stream-Profil'],
	default_user_agent: ['User-Agent'],
	default_output_profile: ['Ausgabeprofil'],
	reason_on_screen: ['Ein Clip mit dem Grund statt eines Fehlers, für abgelehnte Streams'],
	time_zone: ['Zeitzone', 'Etwa Europe/Berlin. Zeitpläne richten sich danach.'],
	preferred_region: [
		'Land von Sendern, die keines nennen',
		'Zwei Buchstaben, etwa DE. Gilt beim Zuordnen zu einem Programmführer.',
	],
	multicast_interface: [
		'Netzwerkschnittstelle für Multicast',
		'Name oder Adresse, für Gruppen, deren Adresse keine nennt. Leer: das System wählt.',
	],
	udp_receive_buffer_bytes: ['Empfangspuffer je UDP- oder RTP-Quelle', inBytes],
	epg_match_mode: ['Wie Namen mit denen eines Programmführers verglichen werden'],
	epg_match_ignore_prefixes: ['Namensanfänge, die nicht zählen', perLine],
	epg_match_ignore_suffixes: ['Namensenden, die nicht zählen', perLine],
	epg_match_ignore_custom: ['Namensteile, die nicht zählen', perLine],
	epg_match_threshold: ['Sicherheit, ab der ein Treffer gilt', 'In Prozent, von 50 bis 100.'],
	epg_match_after_refresh: ['Sender nach jeder Aktualisierung eines Programmführers zuordnen'],
	epg_placeholders: [
		'Platzhalter für Sender ohne Programmführer',
		'Fernseher und Medienserver zeigen viele Sender nur, wenn sie Sendungen haben.',
	],
	epg_placeholder_title: ['Titel der Platzhalter', '{channel_name} ist der Name des Senders.'],
	epg_placeholder_description: [
		'Beschreibung der Platzhalter',
		'{channel_name} ist der Name des Senders. Leer: keine.',
	],
	epg_placeholder_minutes: ['Länge eines Platzhalters', 'In Minuten, von 5 bis 1440.'],
	panel_rows: ['Filme in Player-Apps'],
	strm_enabled: ['Filme und Serien nach Zeitplan als STRM-Dateien exportieren'],
	strm_folder: ['Ordner des Exports', 'Ein absoluter Pfad.'],
	strm_user: [
		'Benutzer, dessen Titel exportiert werden',
		'Sie laufen mit dem Player-Passwort dieses Benutzers.',
	],
	strm_nfo: ['Beschreibungen neben den exportierten Dateien (NFO)'],
	strm_cron_expression: ['Zeitplan des Exports (cron)', 'Minute, Stunde, Monatstag, Monat, Wochentag.'],
	log_level: ['Protokollstufe', 'error, warn, info, debug oder trace; auch je Teil, etwa info,actors=debug.'],
	login_password_for_players: ['Player dürfen das Anmeldepasswort benutzen'],
	public_url: [
		'Öffentliche Adresse',
		'Die Adresse, unter der Clients das Gateway erreichen, wenn es nicht die benutzte ist.',
	],
	adult_without_user: ['Aufrufer ohne Benutzer sehen Sender für Erwachsene'],
	schedule_enabled: ['Sicherungen nach Zeitplan'],
	schedule_frequency: ['Wie oft'],
	schedule_time: ['Uhrzeit', 'Stunden und Minuten, etwa 03:30.'],
	schedule_day_of_week: ['Tag der wöchentlichen Sicherungen', '0 ist Sonntag.'],
	retention_count: ['Aufbewahrte Sicherungen nach Zeitplan', '0 behält alle.'],
	schedule_cron_expression: [
		'Zeitplan (cron)',
		'Minute, Stunde, Monatstag, Monat, Wochentag. Ersetzt die drei darüber.',
	],
	tuner_count: ['Gleichzeitige Streams, die der Tuner anbietet'],
	friendly_name: ['Name des Tuners'],
	device_id: ['Kennung des Tuners', 'Buchstaben, Ziffern und Bindestriche.'],
	terminate_on_limit_exceeded: [
		'Am Limit einen anderen Stream des Benutzers beenden',
		'Sonst wird der neue abgelehnt.',
	],
	terminate_oldest: ['Den ältesten beenden', 'Sonst den neuesten.'],
	prioritize_single_client_channels: ['Zuerst Streams beenden, die sonst niemand sieht'],
	tv_template: ['Dateiname einer Folge', fields],
	tv_fallback_template: ['Dateiname einer Sendung ohne Staffel oder Folge', fields],
	movie_template: ['Dateiname eines Films', fields],
	movie_fallback_template: ['Dateiname eines Films ohne Jahr', fields],
	pre_offset_minutes: ['Minuten Vorlauf', 'Für neue Aufnahmen.'],
	post_offset_minutes: ['Minuten Nachlauf', 'Für neue Aufnahmen.'],
	quota_bytes: ['Größe aller Aufnahmen', `${inBytes} 0: kein Limit.`],
	user_quota_bytes: ['Größe der Aufnahmen je Benutzer', `${inBytes} 0: kein Limit.`],
	retention_days: ['Tage, die Aufnahmen bleiben', '0: unbegrenzt.'],
	retention_free_bytes: ['Freier Platz auf der Platte der Aufnahmen', `${inBytes} 0 löscht dafür keine.`],
	reserve_minutes: [
		'Minuten vor einer Aufnahme, ab denen ihre Verbindung reserviert ist',
		'Neue Zuschauer bekommen sie in dieser Zeit nicht. 0: keine Reservierung.',
	],
	reserved_slots: [
		'Verbindungen nur für Aufnahmen',
		'Eine Angabe je Zeile: ID eines Kontos, Zahl der Verbindungen und wahlweise Tage und Stunden, etwa 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: [
		'Aufnahmen dürfen Zuschauer trennen',
		'Wenn eine Sendung sonst keine Verbindung bekommt.',
	],
	comskip_enabled: ['Nach jeder Aufnahme Werbung suchen', 'Mit dem Programm comskip.'],
	comskip_mode: ['Gefundene Werbung', 'Die Aufnahme bleibt, wie sie ist. Die Kopie liegt daneben.'],
	remux: ['Container fertiger Aufnahmen', 'Ohne Angabe bleiben Dateien Transportströme.'],
	write_nfo: ['Beschreibungen für Medienserver neben Aufnahmen (NFO)'],
	write_artwork: ['Bilder für Medienserver neben Aufnahmen'],
	recordings_in_players: [
		'Player finden Aufnahmen',
		'Als Filme und Serien in Player-Apps und in der Playlist der Aufnahmen.',
	],
	standard_users_record: ['Benutzer der Stufe 1 nehmen auf', 'Sie finden und ändern nur eigene Aufnahmen.'],
	ignore_same_channel_connections: ['Streams desselben Senders zählen einmal'],
};

/** Namen, die in ihrer Gruppe etwas anderes bedeuten. */
const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Rückschau aufzeichnen', 'Für Sender ohne eigene Wahl.'],
		hours: ['Stunden Rückschau je Sender'],
		channel_bytes: ['Größe der Rückschau eines Senders', inBytes],
		total_bytes: [
			'Größe der Rückschau aller Sender',
			`${inBytes} Sie schrumpft, bevor Aufnahmen Platz fehlt.`,
		],
	},
	name_settings: {
		clean_movies: ['Filmnamen bereinigen', cleaned],
		clean_series: ['Seriennamen bereinigen', cleaned],
		clean_channels: ['Sendernamen bereinigen', 'Von Aktualisierungen angelegte und neue Sender.'],
		clean_accounts: ['Konten, deren Namen alle bereinigt werden', 'Ihre IDs, eine je Zeile.'],
		keep_accounts: ['Konten, deren Namen unverändert bleiben', 'Ihre IDs, eine je Zeile.'],
		patterns: [
			'Eigene Muster, zuerst angewandt',
			'Eines je Zeile: MUSTER => ERSATZ. Mit movie:, series: oder channel: davor nur für eine Art.',
		],
	},
	history_settings: {
		enabled: ['Verlauf von Raten und Zuschauern aufbewahren', 'In Dateien fester Größe im Datenordner.'],
		users: ['Verlauf jedes Benutzers aufbewahren', 'Das Ausschalten löscht, was aufbewahrt wurde.'],
		user_days: ['Tage, für die der Verlauf von Benutzern aufbewahrt wird', 'Von 1 bis 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Filme und Serien ergänzen',
			'Nach Importen. Titel werden an der Kennung oder an Name und Jahr erkannt; passen mehrere, wird keiner genommen.',
		],
		tmdb_api_key: [
			'Ihr Schlüssel oder Zugriffstoken',
			'Aus Ihrem Konto bei themoviedb.org. Er wird nie wieder angezeigt.',
		],
		completion_language: ['Sprache der Titel und Beschreibungen', 'Etwa de oder de-DE.'],
		tmdb_address: ['Adresse der API', 'Eine andere nur für einen eigenen Spiegelserver.'],
		completion_titles_per_run: [
			'Titel je Durchlauf',
			'Von 1 bis 100000. Der nächste Durchlauf erledigt den Rest.',
		],
	},
	dvr_settings: { retention_count: ['Aufnahmen, die bleiben', '0 behält alle.'] },
};

/** Liefert Beschriftung und Erklärung; eine unbekannte Einstellung heißt wie ihr Name. */
function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}: wer verbinden darf`, networks];
	if (part === 'anonymous') return [`${of}: wer es ohne Benutzer darf`, networks];
	return said[name] ?? [name];
}

export const settings: Texts<typeof text> = {
	search: 'Einstellungen suchen',
	noMatch: 'Keine Einstellung gefunden',
	sectionsLabel: 'Abschnitte',
	sections: {
		system_settings: 'Allgemein',
		stream_settings: 'Streams',
		epg_settings: 'Programmführer',
		dvr_settings: 'Aufnahmen',
		timeshift_settings: 'Rückschau',
		library_settings: 'Filme und Serien',
		name_settings: 'Namen',
		completion_settings: 'Ergänzung durch TMDB',
		user_limit_settings: 'Limits der Benutzer',
		tuner_settings: 'Tuner',
		network_access: 'Zugriff aus Netzen',
		history_settings: 'Verlauf',
		backup_settings: 'Sicherungen',
		proxy_settings: 'Technik',
	},
	advanced: 'Erweitert',
	advancedText: 'Diese Werte passen fast überall. Ändern Sie einen nur, wenn Sie wissen, warum.',
	toBackups: 'Sicherungen erstellen und wiederherstellen',
	saidOf,
	fallback: (value) => `Standard: ${value}`,
	reset: (label) => `${label} zurücksetzen`,
	resetShort: 'Auf Standard zurücksetzen',
	own: 'geändert',
	none: 'keine',
	yes: 'ja',
	no: 'nein',
	size: (n) => `${number(n)} (${bytes(n)})`,
	saved: 'Gespeichert.',
	choices: {
		replace_own: 'Verbindung desselben Geräts ersetzen',
		refuse: 'neue Verbindung ablehnen',
		off: 'nie',
		unavailable: 'für Streams, die gerade nicht starten können',
		all: 'auch für abgelehnte Zuschauer und unbekannte Sender',
		daily: 'täglich',
		weekly: 'wöchentlich',
		none: 'keiner',
		watched: 'solange jemand zusieht',
		always: 'immer; belegt eine Verbindung',
		mark: 'wird markiert',
		cut: 'wird markiert und in einer Kopie ausgelassen',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'wie sie sind',
		advanced: 'ohne die Teile unten',
		titles: 'ein Eintrag je Film',
		versions: 'ein Eintrag je Fassung',
	},
};
