import { bytes, number, texts } from '$lib/i18n';

/** Label and explanation of a setting. */
type Said = readonly [label: string, hint?: string];

const networks = 'Networks separated by commas, such as 192.168.0.0/16. Also: all, private, loopback.';
const seconds = 'In seconds.';
const inBytes = 'In bytes.';
const cleaned =
	'Without marks of language and quality, such as EN - and [4K]. The name of the provider is kept.';
const perLine = 'One per line. Used if chosen above.';
const fields =
	'Folders and name, with {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} and {id}.';
const classes: Record<string, string> = {
	ui: 'Interface and API',
	streams: 'Streams',
	xc_api: 'Player apps (panel)',
	m3u_epg: 'Playlists and guides',
	tuner: 'Tuner',
	metrics: 'Metrics',
};

const said: Record<string, Said> = {
	connect_timeout: ['Time to connect to a provider', seconds],
	first_packet_timeout: ['Time until the first data of a stream', seconds],
	stall_timeout: ['Time without data until a source counts as lost', seconds],
	silence_suspected_after: ['Time without data until another stream is opened beside it', seconds],
	picture_timeout: [
		'Time without a picture until it counts as lost',
		'In seconds of the programme. 0: never.',
	],
	sound_timeout: ['Time without sound until it counts as lost', 'In seconds of the programme. 0: never.'],
	buffering_timeout: ['Time over which the speed of a source is measured', seconds],
	random_access_wait: ['Time for which a new source is searched for a picture to begin with', seconds],
	start_lead: [
		'Part of the programme that a new source may repeat to begin at a key frame',
		'In seconds. Viewers are later by at most as much afterwards.',
	],
	start_timeout: ['Time for which a viewer waits for a channel that starts', seconds],
	give_up_after: ['Time for which a channel looks for a source before it ends', seconds],
	channel_shutdown_delay: ['Time for which a channel runs on without viewers', seconds],
	new_client_behind_seconds: ['Distance from the newest data at which a viewer starts', seconds],
	ring_seconds: ['Past data that a channel keeps, in time', seconds],
	ring_bytes: ['Past data that a channel keeps, in size', inBytes],
	ring_gop_bytes: ['Size of the last group of pictures that is always kept', inBytes],
	recording_lead_seconds: ['Lead with which a source is read that is faster than real time', seconds],
	hls_height_max: ['Maximum height of the picture of HLS streams with variants', 'In lines. Empty: any.'],
	hls_bits_per_second_max: [
		'Maximum bit rate of HLS streams with variants',
		'In bits per second. Empty: any.',
	],
	ring_budget_bytes: [
		'Memory for the past data of all channels',
		'In bytes. Empty: a quarter of the memory.',
	],
	slow_client_limit: ['Times per minute that a viewer may fall behind'],
	return_to_preferred_after: [
		'Time until a return to the first stream is tried',
		'In seconds. Empty: no return.',
	],
	at_limit: ['When a viewer changes channels and the account is full'],
	transcoders_max: ['Programs that run at once for output profiles', '0 runs none.'],
	default_stream_profile: ['Stream profile'],
	default_user_agent: ['User agent'],
	default_output_profile: ['Output profile'],
	reason_on_screen: ['A clip with the reason instead of an error, for refused streams'],
	time_zone: ['Time zone', 'Such as Europe/Berlin. Schedules use it.'],
	preferred_region: [
		'Country of channels that name none',
		'Two letters, such as DE. Used when they are matched with a guide.',
	],
	multicast_interface: [
		'Network interface for multicast',
		'Its name or address, for groups whose address names none. Empty: the system chooses.',
	],
	udp_receive_buffer_bytes: ['Receive buffer of each UDP or RTP source', inBytes],
	epg_match_mode: ['How names are compared with those of a guide'],
	epg_match_ignore_prefixes: ['Beginnings of names that do not count', perLine],
	epg_match_ignore_suffixes: ['Ends of names that do not count', perLine],
	epg_match_ignore_custom: ['Parts of names that do not count', perLine],
	epg_match_threshold: ['Certainty from which a match is used', 'In percent, from 50 to 100.'],
	epg_match_after_refresh: ['Match channels after each refresh of a guide'],
	epg_placeholders: [
		'Placeholders for channels without a guide',
		'Televisions and media servers show many channels only if they have programmes.',
	],
	epg_placeholder_title: ['Title of placeholders', '{channel_name} is the name of the channel.'],
	epg_placeholder_description: [
		'Description of placeholders',
		'{channel_name} is the name of the channel. Empty: none.',
	],
	epg_placeholder_minutes: ['Length of a placeholder', 'In minutes, from 5 to 1440.'],
	panel_rows: ['Films in player apps'],
	strm_enabled: ['Scheduled export of films and series as STRM files'],
	strm_folder: ['Folder of the export', 'An absolute path.'],
	strm_user: ['User whose titles are exported', 'They play with the player password of this user.'],
	strm_nfo: ['Descriptions beside the exported files (NFO)'],
	strm_cron_expression: ['Schedule of the export (cron)', 'Minute, hour, day of month, month, day of week.'],
	log_level: ['Log level', 'error, warn, info, debug or trace; also by part, such as info,actors=debug.'],
	login_password_for_players: ['Players may use the login password'],
	public_url: [
		'Public address',
		'The address under which clients reach the gateway, if it is not the one they use.',
	],
	adult_without_user: ['Callers without a user see adult channels'],
	schedule_enabled: ['Scheduled back-ups'],
	schedule_frequency: ['How often'],
	schedule_time: ['Time of day', 'Hours and minutes, such as 03:30.'],
	schedule_day_of_week: ['Day of weekly back-ups', '0 is Sunday.'],
	retention_count: ['Scheduled back-ups that are kept', '0 keeps all.'],
	schedule_cron_expression: [
		'Schedule (cron)',
		'Minute, hour, day of month, month, day of week. Replaces the three above.',
	],
	tuner_count: ['Streams at the same time that the tuner offers'],
	friendly_name: ['Name of the tuner'],
	device_id: ['Identity of the tuner', 'Letters, digits and hyphens.'],
	terminate_on_limit_exceeded: [
		'End another stream of the user at the limit',
		'Otherwise the new one is refused.',
	],
	terminate_oldest: ['End the oldest one', 'Otherwise the newest one.'],
	prioritize_single_client_channels: ['End streams first that nobody else watches'],
	tv_template: ['Name of the file of an episode', fields],
	tv_fallback_template: ['Name of the file of a programme without season or episode', fields],
	movie_template: ['Name of the file of a film', fields],
	movie_fallback_template: ['Name of the file of a film without a year', fields],
	pre_offset_minutes: ['Minutes that are recorded before the start', 'For new recordings.'],
	post_offset_minutes: ['Minutes that are recorded after the end', 'For new recordings.'],
	quota_bytes: ['Size of all recordings', `${inBytes} 0: no limit.`],
	user_quota_bytes: ['Size of the recordings of each user', `${inBytes} 0: no limit.`],
	retention_days: ['Days for which recordings are kept', '0 keeps them.'],
	retention_free_bytes: ['Free space on the disk of the recordings', `${inBytes} 0 deletes none for it.`],
	reserve_minutes: [
		'Minutes before a recording from which its connection is reserved',
		'New viewers do not get it in this time. 0 reserves none.',
	],
	reserved_slots: [
		'Connections that only recordings get',
		'One per line: the id of an account, the number of connections, and optionally days and hours, such as 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: ['Recordings may disconnect viewers', 'If a programme gets no connection otherwise.'],
	comskip_enabled: ['Search for commercials after each recording', 'With the program comskip.'],
	comskip_mode: ['Commercials that were found', 'The recording stays as it is. The copy is beside it.'],
	remux: ['Container of recordings after their end', 'Without one, files stay transport streams.'],
	write_nfo: ['Descriptions for media servers beside recordings (NFO)'],
	write_artwork: ['Pictures for media servers beside recordings'],
	recordings_in_players: [
		'Players find recordings',
		'As films and series of player apps, and in the playlist of recordings.',
	],
	standard_users_record: ['Users of level 1 record', 'They find and change their own recordings only.'],
	ignore_same_channel_connections: ['Streams of one channel count once'],
};

/** Those whose names mean something else in their group. */
const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Keep the past of channels', 'For channels without a choice of their own.'],
		hours: ['Hours that are kept of a channel'],
		channel_bytes: ['Size of the past of a channel', inBytes],
		total_bytes: ['Size of the past of all channels', `${inBytes} It shrinks before recordings lack space.`],
	},
	name_settings: {
		clean_movies: ['Clean the names of films', cleaned],
		clean_series: ['Clean the names of series', cleaned],
		clean_channels: ['Clean the names of channels', 'Of those that refreshes create, and of new ones.'],
		clean_accounts: ['Accounts whose names are all cleaned', 'Their ids, one per line.'],
		keep_accounts: ['Accounts whose names stay as they are', 'Their ids, one per line.'],
		patterns: [
			'Own patterns, applied first',
			'One per line: PATTERN => REPLACEMENT. With movie:, series: or channel: before it for one kind.',
		],
	},
	history_settings: {
		enabled: ['Keep the history of rates and viewers', 'In files of fixed size in the data folder.'],
		users: ['Keep the history of each user', 'Switching it off removes what was kept.'],
		user_days: ['Days for which the history of users is kept', 'From 1 to 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Complete films and series',
			'After imports. Titles are found by id, or by name and year; if several fit, none is taken.',
		],
		tmdb_api_key: [
			'Your key or access token',
			'From your account at themoviedb.org. It is never shown again.',
		],
		completion_language: ['Language of titles and plots', 'Such as de or de-DE.'],
		tmdb_address: ['Address of the API', 'Another one only for a mirror of your own.'],
		completion_titles_per_run: ['Titles of one run', 'From 1 to 100000. The next run does the rest.'],
	},
	dvr_settings: { retention_count: ['Recordings that are kept', '0 keeps all.'] },
};

/** Returns label and explanation of a setting of a group; an unknown one has its name. */
function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}: who may connect`, networks];
	if (part === 'anonymous') return [`${of}: who may without a user`, networks];
	return said[name] ?? [name];
}

export const text = texts('settings', {
	search: 'Search settings',
	noMatch: 'No setting matches',
	sectionsLabel: 'Sections',
	/** Titles of the groups by their keys. */
	sections: {
		system_settings: 'General',
		stream_settings: 'Streams',
		epg_settings: 'Guide',
		dvr_settings: 'Recordings',
		timeshift_settings: 'Past of channels',
		library_settings: 'Films and series',
		name_settings: 'Names',
		completion_settings: 'Completion from TMDB',
		user_limit_settings: 'Limits of users',
		tuner_settings: 'Tuner',
		network_access: 'Access from networks',
		history_settings: 'History',
		backup_settings: 'Back-ups',
		proxy_settings: 'Engine',
	} as Record<string, string>,
	advanced: 'Advanced',
	advancedText: 'These fit almost everywhere. Change one only if you know why.',
	toBackups: 'Make and restore back-ups',
	saidOf,
	fallback: (value: string) => `Default: ${value}`,
	reset: (label: string) => `Reset ${label}`,
	resetShort: 'Reset to default',
	own: 'changed',
	none: 'none',
	yes: 'yes',
	no: 'no',
	size: (n: number) => `${number(n)} (${bytes(n)})`,
	saved: 'Saved.',
	choices: {
		replace_own: 'replace the connection of the same device',
		refuse: 'refuse the new connection',
		off: 'never',
		unavailable: 'for streams that cannot start at the moment',
		all: 'also for refused viewers and unknown channels',
		daily: 'daily',
		weekly: 'weekly',
		none: 'none',
		watched: 'while somebody watches',
		always: 'always, which takes a connection',
		mark: 'are marked',
		cut: 'are marked, and left out in a copy',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'as they are',
		advanced: 'without the parts below',
		titles: 'one entry per film',
		versions: 'one entry per version',
	} as Record<string, string>,
});
