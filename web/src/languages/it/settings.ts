import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/settings/text';
import type { Texts } from '../catalogue';

/** Label and explanation of a setting. */
type Said = readonly [label: string, hint?: string];

const networks = 'Reti separate da virgole, per esempio 192.168.0.0/16. Anche: all, private, loopback.';
const seconds = 'In secondi.';
const inBytes = 'In byte.';
const cleaned =
	'Senza indicazioni di lingua e qualità, come EN - e [4K]. Il nome del fornitore resta salvato.';
const perLine = 'Uno per riga. Vale se scelto sopra.';
const fields =
	'Cartelle e nome, con {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} e {id}.';
const classes: Record<string, string> = {
	ui: 'Interfaccia e API',
	streams: 'Flussi',
	xc_api: 'App lettori (pannello)',
	m3u_epg: 'Playlist e guide',
	tuner: 'Tuner',
	metrics: 'Metriche',
};

const said: Record<string, Said> = {
	connect_timeout: ['Tempo per connettersi a un fornitore', seconds],
	first_packet_timeout: ['Attesa dei primi dati di un flusso', seconds],
	stall_timeout: ['Tempo senza dati prima di considerare persa una sorgente', seconds],
	silence_suspected_after: ['Tempo senza dati prima di aprire in parallelo un altro flusso', seconds],
	picture_timeout: ['Tempo senza immagine prima di considerarla persa', 'In secondi del programma. 0: mai.'],
	sound_timeout: ['Tempo senza audio prima di considerarlo perso', 'In secondi del programma. 0: mai.'],
	buffering_timeout: ['Intervallo di misura della velocità di una sorgente', seconds],
	random_access_wait: ['Tempo di ricerca di un’immagine iniziale in una nuova sorgente', seconds],
	start_lead: [
		'Parte del programma che una nuova sorgente può ripetere per iniziare da un fotogramma chiave',
		'In secondi. Poi gli spettatori sono in ritardo al massimo di altrettanto.',
	],
	start_timeout: ['Attesa di uno spettatore per un canale in avvio', seconds],
	give_up_after: ['Tempo per cui un canale cerca una sorgente prima di terminare', seconds],
	channel_shutdown_delay: ['Tempo per cui un canale resta attivo senza spettatori', seconds],
	new_client_behind_seconds: ['Distanza dai dati più recenti da cui parte uno spettatore', seconds],
	ring_seconds: ['Dati passati conservati da un canale, in tempo', seconds],
	ring_bytes: ['Dati passati conservati da un canale, in dimensione', inBytes],
	ring_gop_bytes: ['Dimensione dell’ultimo gruppo di immagini sempre conservato', inBytes],
	recording_lead_seconds: ['Anticipo di lettura di una sorgente più veloce del tempo reale', seconds],
	hls_height_max: [
		'Altezza massima dell’immagine dei flussi HLS con varianti',
		'In linee. Vuoto: qualsiasi.',
	],
	hls_bits_per_second_max: [
		'Bitrate massimo dei flussi HLS con varianti',
		'In bit al secondo. Vuoto: qualsiasi.',
	],
	ring_budget_bytes: [
		'Memoria per i dati passati di tutti i canali',
		'In byte. Vuoto: un quarto della memoria.',
	],
	slow_client_limit: ['Volte al minuto in cui uno spettatore può restare indietro'],
	return_to_preferred_after: [
		'Tempo prima di provare a tornare al primo flusso',
		'In secondi. Vuoto: nessun ritorno.',
	],
	at_limit: ['Se uno spettatore cambia canale e l’account è pieno'],
	transcoders_max: ['Programmi contemporanei per i profili di uscita', '0: nessuno.'],
	default_stream_profile: ['Profilo flusso'],
	default_user_agent: ['User agent'],
	default_output_profile: ['Profilo di uscita'],
	reason_on_screen: ['Per i flussi rifiutati, un filmato con il motivo invece di un errore'],
	time_zone: ['Fuso orario', 'Per esempio Europe/Rome. Lo usano le pianificazioni.'],
	preferred_region: [
		'Paese dei canali che non ne indicano uno',
		'Due lettere, per esempio IT. Serve per l’abbinamento con una guida.',
	],
	multicast_interface: [
		'Interfaccia di rete per il multicast',
		'Nome o indirizzo, per i gruppi il cui indirizzo non ne indica una. Vuoto: sceglie il sistema.',
	],
	udp_receive_buffer_bytes: ['Buffer di ricezione di ogni sorgente UDP o RTP', inBytes],
	epg_match_mode: ['Come si confrontano i nomi con quelli di una guida'],
	epg_match_ignore_prefixes: ['Inizi dei nomi da ignorare', perLine],
	epg_match_ignore_suffixes: ['Finali dei nomi da ignorare', perLine],
	epg_match_ignore_custom: ['Parti dei nomi da ignorare', perLine],
	epg_match_threshold: ['Certezza minima di un abbinamento', 'In percentuale, da 50 a 100.'],
	epg_match_after_refresh: ['Abbina i canali dopo ogni aggiornamento di una guida'],
	epg_placeholders: [
		'Segnaposto per i canali senza guida',
		'Televisori e media server mostrano molti canali solo se hanno programmi.',
	],
	epg_placeholder_title: ['Titolo dei segnaposto', '{channel_name} è il nome del canale.'],
	epg_placeholder_description: [
		'Descrizione dei segnaposto',
		'{channel_name} è il nome del canale. Vuoto: nessuna.',
	],
	epg_placeholder_minutes: ['Durata di un segnaposto', 'In minuti, da 5 a 1440.'],
	panel_rows: ['Film nelle app lettori'],
	strm_enabled: ['Esportazione pianificata di film e serie come file STRM'],
	strm_folder: ['Cartella dell’esportazione', 'Un percorso assoluto.'],
	strm_user: [
		'Utente di cui si esportano i titoli',
		'Si riproducono con la password per i lettori di questo utente.',
	],
	strm_nfo: ['Descrizioni accanto ai file esportati (NFO)'],
	strm_cron_expression: [
		'Pianificazione dell’esportazione (cron)',
		'Minuto, ora, giorno del mese, mese, giorno della settimana.',
	],
	log_level: [
		'Livello di log',
		'error, warn, info, debug o trace; anche per parte, per esempio info,actors=debug.',
	],
	login_password_for_players: ['I lettori possono usare la password di accesso'],
	public_url: [
		'Indirizzo pubblico',
		'L’indirizzo con cui i client raggiungono il gateway, se diverso da quello che usano.',
	],
	adult_without_user: ['Chi accede senza utente vede i canali per adulti'],
	schedule_enabled: ['Backup pianificati'],
	schedule_frequency: ['Frequenza'],
	schedule_time: ['Ora', 'Ore e minuti, per esempio 03:30.'],
	schedule_day_of_week: ['Giorno dei backup settimanali', '0 è domenica.'],
	retention_count: ['Backup pianificati da conservare', '0 li conserva tutti.'],
	schedule_cron_expression: [
		'Pianificazione (cron)',
		'Minuto, ora, giorno del mese, mese, giorno della settimana. Sostituisce i tre campi precedenti.',
	],
	tuner_count: ['Flussi contemporanei offerti dal tuner'],
	friendly_name: ['Nome del tuner'],
	device_id: ['Identità del tuner', 'Lettere, cifre e trattini.'],
	terminate_on_limit_exceeded: [
		'Al limite, termina un altro flusso dell’utente',
		'Altrimenti viene rifiutato il nuovo.',
	],
	terminate_oldest: ['Termina il più vecchio', 'Altrimenti il più recente.'],
	prioritize_single_client_channels: ['Termina prima i flussi che nessun altro guarda'],
	tv_template: ['Nome del file di un episodio', fields],
	tv_fallback_template: ['Nome del file di un programma senza stagione o episodio', fields],
	movie_template: ['Nome del file di un film', fields],
	movie_fallback_template: ['Nome del file di un film senza anno', fields],
	pre_offset_minutes: ['Minuti registrati prima dell’inizio', 'Per le nuove registrazioni.'],
	post_offset_minutes: ['Minuti registrati dopo la fine', 'Per le nuove registrazioni.'],
	quota_bytes: ['Dimensione di tutte le registrazioni', `${inBytes} 0: nessun limite.`],
	user_quota_bytes: ['Dimensione delle registrazioni di ogni utente', `${inBytes} 0: nessun limite.`],
	retention_days: ['Giorni di conservazione delle registrazioni', '0 le conserva.'],
	retention_free_bytes: [
		'Spazio libero sul disco delle registrazioni',
		`${inBytes} Con 0 non si elimina nulla per questo.`,
	],
	reserve_minutes: [
		'Minuti prima di una registrazione in cui la connessione è riservata',
		'In questo tempo non va a nuovi spettatori. 0: nessuna riserva.',
	],
	reserved_slots: [
		'Connessioni solo per le registrazioni',
		'Una per riga: ID di un account, numero di connessioni ed eventualmente giorni e ore, per esempio 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: [
		'Le registrazioni possono disconnettere spettatori',
		'Se altrimenti un programma non ottiene una connessione.',
	],
	comskip_enabled: ['Cerca le pubblicità dopo ogni registrazione', 'Con il programma comskip.'],
	comskip_mode: ['Le pubblicità trovate', 'La registrazione resta com’è. La copia sta accanto.'],
	remux: ['Contenitore delle registrazioni finite', 'Se manca, i file restano transport stream.'],
	write_nfo: ['Descrizioni per media server accanto alle registrazioni (NFO)'],
	write_artwork: ['Immagini per media server accanto alle registrazioni'],
	recordings_in_players: [
		'I lettori trovano le registrazioni',
		'Come film e serie nelle app lettori e nella playlist delle registrazioni.',
	],
	standard_users_record: [
		'Gli utenti di livello 1 registrano',
		'Trovano e modificano solo le proprie registrazioni.',
	],
	ignore_same_channel_connections: ['Più flussi dello stesso canale contano una volta'],
};

/** Those whose names mean something else in their group. */
const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Timeshift dei canali', 'Per i canali senza una scelta propria.'],
		hours: ['Ore conservate di un canale'],
		channel_bytes: ['Dimensione del timeshift di un canale', inBytes],
		total_bytes: [
			'Dimensione del timeshift di tutti i canali',
			`${inBytes} Si riduce prima che manchi spazio alle registrazioni.`,
		],
	},
	name_settings: {
		clean_movies: ['Ripulisci i nomi dei film', cleaned],
		clean_series: ['Ripulisci i nomi delle serie', cleaned],
		clean_channels: ['Ripulisci i nomi dei canali', 'Quelli creati dagli aggiornamenti e quelli nuovi.'],
		clean_accounts: ['Account di cui si ripuliscono tutti i nomi', 'I loro ID, uno per riga.'],
		keep_accounts: ['Account i cui nomi restano come sono', 'I loro ID, uno per riga.'],
		patterns: [
			'Modelli propri, applicati per primi',
			'Uno per riga: MODELLO => SOSTITUZIONE. Con movie:, series: o channel: davanti per un solo tipo.',
		],
	},
	history_settings: {
		enabled: [
			'Conserva la cronologia di bitrate e spettatori',
			'In file di dimensione fissa nella cartella dei dati.',
		],
		users: ['Conserva la cronologia di ogni utente', 'La disattivazione elimina ciò che è stato conservato.'],
		user_days: ['Giorni di conservazione della cronologia degli utenti', 'Da 1 a 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Completa film e serie',
			'Dopo le importazioni. I titoli si riconoscono dall’id oppure da nome e anno; se più di uno corrisponde, non se ne usa nessuno.',
		],
		tmdb_api_key: [
			'La tua chiave o il tuo token di accesso',
			'Dal tuo account su themoviedb.org. Non viene più mostrata.',
		],
		completion_language: ['Lingua di titoli e trame', 'Per esempio it o it-IT.'],
		tmdb_address: ['Indirizzo dell’API', 'Un altro solo per un tuo mirror.'],
		completion_titles_per_run: [
			'Titoli per passaggio',
			'Da 1 a 100000. Il passaggio successivo fa il resto.',
		],
	},
	dvr_settings: { retention_count: ['Registrazioni da conservare', '0 le conserva tutte.'] },
};

/** Returns label and explanation of a setting of a group; an unknown one has its name. */
function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}: chi può connettersi`, networks];
	if (part === 'anonymous') return [`${of}: chi può senza utente`, networks];
	return said[name] ?? [name];
}

export const settings: Texts<typeof text> = {
	search: 'Cerca impostazioni',
	noMatch: 'Nessuna impostazione corrisponde',
	sectionsLabel: 'Sezioni',
	sections: {
		system_settings: 'Generali',
		stream_settings: 'Flussi',
		epg_settings: 'Guida',
		dvr_settings: 'Registrazioni',
		timeshift_settings: 'Timeshift',
		library_settings: 'Film e serie',
		name_settings: 'Nomi',
		completion_settings: 'Completamento da TMDB',
		user_limit_settings: 'Limiti degli utenti',
		tuner_settings: 'Tuner',
		network_access: 'Accesso dalle reti',
		history_settings: 'Cronologia',
		backup_settings: 'Backup',
		proxy_settings: 'Motore',
	},
	advanced: 'Avanzate',
	advancedText: 'Vanno bene quasi ovunque. Modificane una solo se sai perché.',
	toBackups: 'Crea e ripristina backup',
	saidOf,
	fallback: (value) => `Predefinito: ${value}`,
	reset: (label) => `Ripristina ${label}`,
	resetShort: 'Valore predefinito',
	own: 'modificato',
	none: 'nessuno',
	yes: 'sì',
	no: 'no',
	size: (n) => `${number(n)} (${bytes(n)})`,
	saved: 'Salvato.',
	choices: {
		replace_own: 'sostituisci la connessione dello stesso dispositivo',
		refuse: 'rifiuta la nuova connessione',
		off: 'mai',
		unavailable: 'per i flussi che al momento non possono partire',
		all: 'anche per spettatori rifiutati e canali sconosciuti',
		daily: 'ogni giorno',
		weekly: 'ogni settimana',
		none: 'nessuno',
		watched: 'mentre qualcuno guarda',
		always: 'sempre, occupa una connessione',
		mark: 'vengono segnate',
		cut: 'vengono segnate e tolte in una copia',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'come sono',
		advanced: 'senza le parti qui sotto',
		titles: 'una voce per film',
		versions: 'una voce per versione',
	},
};
