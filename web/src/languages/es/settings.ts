import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/settings/text';
import type { Texts } from '../catalogue';

type Said = readonly [label: string, hint?: string];

const networks = 'Redes separadas por comas, como 192.168.0.0/16. También: all, private, loopback.';
const seconds = 'En segundos.';
const inBytes = 'En bytes.';
const cleaned = 'Sin marcas de idioma y calidad, como EN - y [4K]. El nombre del proveedor se conserva.';
const perLine = 'Uno por línea. Se usa si se elige arriba.';
const fields =
	'Carpetas y nombre, con {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} e {id}.';
const cron = 'Minuto, hora, día del mes, mes, día de la semana.';
const classes: Record<string, string> = {
	ui: 'Interfaz y API',
	streams: 'Flujos',
	xc_api: 'Aplicaciones (panel)',
	m3u_epg: 'Listas de reproducción y guías',
	tuner: 'Sintonizador',
	metrics: 'Métricas',
};

const said: Record<string, Said> = {
	connect_timeout: ['Tiempo para conectar con un proveedor', seconds],
	first_packet_timeout: ['Tiempo hasta los primeros datos de un flujo', seconds],
	stall_timeout: ['Tiempo sin datos hasta que una fuente se da por perdida', seconds],
	silence_suspected_after: ['Tiempo sin datos hasta que se abre otro flujo en paralelo', seconds],
	picture_timeout: ['Tiempo sin imagen hasta que se da por perdida', 'En segundos del programa. 0: nunca.'],
	sound_timeout: ['Tiempo sin sonido hasta que se da por perdido', 'En segundos del programa. 0: nunca.'],
	buffering_timeout: ['Tiempo en el que se mide la velocidad de una fuente', seconds],
	random_access_wait: ['Tiempo en el que se busca una imagen inicial en una fuente nueva', seconds],
	start_lead: [
		'Parte del programa que una fuente nueva puede repetir para empezar en un fotograma clave',
		'En segundos. Después, los espectadores van retrasados como máximo ese tiempo.',
	],
	start_timeout: ['Tiempo que un espectador espera a que se inicie un canal', seconds],
	give_up_after: ['Tiempo que un canal busca una fuente antes de terminar', seconds],
	channel_shutdown_delay: ['Tiempo que un canal sigue sin espectadores', seconds],
	new_client_behind_seconds: ['Distancia a los datos más recientes a la que empieza un espectador', seconds],
	ring_seconds: ['Datos pasados que conserva un canal, en tiempo', seconds],
	ring_bytes: ['Datos pasados que conserva un canal, en tamaño', inBytes],
	ring_gop_bytes: ['Tamaño del último grupo de imágenes que siempre se conserva', inBytes],
	recording_lead_seconds: ['Adelanto con el que se lee una fuente más rápida que el tiempo real', seconds],
	hls_height_max: ['Altura máxima de imagen de flujos HLS con variantes', 'En líneas. Vacío: cualquiera.'],
	hls_bits_per_second_max: [
		'Tasa de bits máxima de flujos HLS con variantes',
		'En bits por segundo. Vacío: cualquiera.',
	],
	ring_budget_bytes: [
		'Memoria para los datos pasados de todos los canales',
		'En bytes. Vacío: un cuarto de la memoria.',
	],
	slow_client_limit: ['Veces por minuto que un espectador puede retrasarse'],
	return_to_preferred_after: [
		'Tiempo hasta que se intenta volver al primer flujo',
		'En segundos. Vacío: no se vuelve.',
	],
	at_limit: ['Cuando un espectador cambia de canal y la cuenta está llena'],
	transcoders_max: ['Programas simultáneos para perfiles de salida', '0 no ejecuta ninguno.'],
	default_stream_profile: ['Perfil de flujo'],
	default_user_agent: ['User agent'],
	default_output_profile: ['Perfil de salida'],
	reason_on_screen: ['Un clip con el motivo en lugar de un error, para flujos denegados'],
	time_zone: ['Zona horaria', 'Como Europe/Madrid. La usan las programaciones.'],
	preferred_region: [
		'País de los canales que no indican ninguno',
		'Dos letras, como ES. Se usa al asociarlos con una guía.',
	],
	multicast_interface: [
		'Interfaz de red para multicast',
		'Su nombre o dirección, para grupos cuya dirección no indica ninguna. Vacío: elige el sistema.',
	],
	udp_receive_buffer_bytes: ['Búfer de recepción de cada fuente UDP o RTP', inBytes],
	epg_match_mode: ['Cómo se comparan los nombres con los de una guía'],
	epg_match_ignore_prefixes: ['Comienzos de nombres que no cuentan', perLine],
	epg_match_ignore_suffixes: ['Finales de nombres que no cuentan', perLine],
	epg_match_ignore_custom: ['Partes de nombres que no cuentan', perLine],
	epg_match_threshold: ['Certeza a partir de la cual se usa una asociación', 'En porcentaje, de 50 a 100.'],
	epg_match_after_refresh: ['Asociar canales tras cada actualización de una guía'],
	epg_placeholders: [
		'Programas de relleno para canales sin guía',
		'Televisores y servidores multimedia muestran muchos canales solo si tienen programas.',
	],
	epg_placeholder_title: ['Título de los programas de relleno', '{channel_name} es el nombre del canal.'],
	epg_placeholder_description: [
		'Descripción de los programas de relleno',
		'{channel_name} es el nombre del canal. Vacío: ninguna.',
	],
	epg_placeholder_minutes: ['Duración de un programa de relleno', 'En minutos, de 5 a 1440.'],
	panel_rows: ['Películas en aplicaciones'],
	strm_enabled: ['Exportación programada de películas y series como archivos STRM'],
	strm_folder: ['Carpeta de la exportación', 'Una ruta absoluta.'],
	strm_user: [
		'Usuario cuyos títulos se exportan',
		'Se reproducen con la contraseña de reproductor de este usuario.',
	],
	strm_nfo: ['Descripciones junto a los archivos exportados (NFO)'],
	strm_cron_expression: ['Programación de la exportación (cron)', cron],
	log_level: [
		'Nivel de registro',
		'error, warn, info, debug o trace; también por partes, como info,actors=debug.',
	],
	login_password_for_players: ['Los reproductores pueden usar la contraseña de inicio de sesión'],
	public_url: [
		'Dirección pública',
		'La dirección con la que los clientes acceden a la pasarela, si no es la que usan.',
	],
	adult_without_user: ['Quien accede sin usuario ve los canales para adultos'],
	schedule_enabled: ['Copias de seguridad programadas'],
	schedule_frequency: ['Frecuencia'],
	schedule_time: ['Hora del día', 'Horas y minutos, como 03:30.'],
	schedule_day_of_week: ['Día de las copias semanales', '0 es domingo.'],
	retention_count: ['Copias programadas que se conservan', '0 las conserva todas.'],
	schedule_cron_expression: ['Programación (cron)', `${cron} Sustituye a los tres anteriores.`],
	tuner_count: ['Flujos simultáneos que ofrece el sintonizador'],
	friendly_name: ['Nombre del sintonizador'],
	device_id: ['Identidad del sintonizador', 'Letras, cifras y guiones.'],
	terminate_on_limit_exceeded: [
		'Terminar otro flujo del usuario en el límite',
		'Si no, se rechaza el nuevo.',
	],
	terminate_oldest: ['Terminar el más antiguo', 'Si no, el más reciente.'],
	prioritize_single_client_channels: ['Terminar primero los flujos que nadie más ve'],
	tv_template: ['Nombre del archivo de un episodio', fields],
	tv_fallback_template: ['Nombre del archivo de un programa sin temporada ni episodio', fields],
	movie_template: ['Nombre del archivo de una película', fields],
	movie_fallback_template: ['Nombre del archivo de una película sin año', fields],
	pre_offset_minutes: ['Minutos que se graban antes del inicio', 'Para grabaciones nuevas.'],
	post_offset_minutes: ['Minutos que se graban después del final', 'Para grabaciones nuevas.'],
	quota_bytes: ['Tamaño de todas las grabaciones', `${inBytes} 0: sin límite.`],
	user_quota_bytes: ['Tamaño de las grabaciones de cada usuario', `${inBytes} 0: sin límite.`],
	retention_days: ['Días que se conservan las grabaciones', '0 las conserva.'],
	retention_free_bytes: [
		'Espacio libre en el disco de las grabaciones',
		`${inBytes} 0 no elimina ninguna por ello.`,
	],
	reserve_minutes: [
		'Minutos antes de una grabación en que se reserva su conexión',
		'En ese tiempo no la reciben espectadores nuevos. 0 no reserva ninguna.',
	],
	reserved_slots: [
		'Conexiones solo para grabaciones',
		'Una por línea: el id de una cuenta, el número de conexiones y, si se quiere, días y horas, como 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: [
		'Las grabaciones pueden desconectar a espectadores',
		'Si un programa no obtiene conexión de otro modo.',
	],
	comskip_enabled: ['Buscar publicidad después de cada grabación', 'Con el programa comskip.'],
	comskip_mode: ['Publicidad encontrada', 'La grabación queda como está. La copia está junto a ella.'],
	remux: ['Contenedor de las grabaciones terminadas', 'Sin él, los archivos siguen siendo MPEG-TS.'],
	write_nfo: ['Descripciones para servidores multimedia junto a las grabaciones (NFO)'],
	write_artwork: ['Imágenes para servidores multimedia junto a las grabaciones'],
	recordings_in_players: [
		'Los reproductores encuentran las grabaciones',
		'Como películas y series en aplicaciones, y en la lista de grabaciones.',
	],
	standard_users_record: [
		'Los usuarios de nivel 1 graban',
		'Solo encuentran y cambian sus propias grabaciones.',
	],
	ignore_same_channel_connections: ['Los flujos de un mismo canal cuentan una vez'],
};

const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Guardar lo emitido por los canales', 'Para canales sin elección propia.'],
		hours: ['Horas que se guardan de un canal'],
		channel_bytes: ['Tamaño del diferido de un canal', inBytes],
		total_bytes: [
			'Tamaño del diferido de todos los canales',
			`${inBytes} Se reduce antes de que falte espacio para grabaciones.`,
		],
	},
	name_settings: {
		clean_movies: ['Limpiar los nombres de películas', cleaned],
		clean_series: ['Limpiar los nombres de series', cleaned],
		clean_channels: [
			'Limpiar los nombres de canales',
			'De los que crean las actualizaciones y de los nuevos.',
		],
		clean_accounts: ['Cuentas cuyos nombres se limpian todos', 'Sus id, uno por línea.'],
		keep_accounts: ['Cuentas cuyos nombres quedan como están', 'Sus id, uno por línea.'],
		patterns: [
			'Patrones propios, aplicados primero',
			'Uno por línea: PATRÓN => SUSTITUCIÓN. Con movie:, series: o channel: delante para un solo tipo.',
		],
	},
	history_settings: {
		enabled: [
			'Guardar el historial de tasas y espectadores',
			'En archivos de tamaño fijo de la carpeta de datos.',
		],
		users: ['Guardar el historial de cada usuario', 'Al desactivarlo se elimina lo guardado.'],
		user_days: ['Días que se guarda el historial de los usuarios', 'De 1 a 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Completar películas y series',
			'Después de las importaciones. Los títulos se reconocen por su identificador o por nombre y año; si encajan varios, no se toma ninguno.',
		],
		tmdb_api_key: ['Su clave o token de acceso', 'De su cuenta en themoviedb.org. No se vuelve a mostrar.'],
		completion_language: ['Idioma de títulos y sinopsis', 'Como es o es-ES.'],
		tmdb_address: ['Dirección de la API', 'Otra solo para un espejo propio.'],
		completion_titles_per_run: ['Títulos por pasada', 'De 1 a 100000. La siguiente pasada hace el resto.'],
	},
	dvr_settings: { retention_count: ['Grabaciones que se conservan', '0 las conserva todas.'] },
};

function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}: quién puede conectarse`, networks];
	if (part === 'anonymous') return [`${of}: quién puede sin usuario`, networks];
	return said[name] ?? [name];
}

export const settings: Texts<typeof text> = {
	search: 'Buscar ajustes',
	noMatch: 'Ningún ajuste coincide',
	sectionsLabel: 'Secciones',
	sections: {
		system_settings: 'General',
		stream_settings: 'Flujos',
		epg_settings: 'Guía',
		dvr_settings: 'Grabaciones',
		timeshift_settings: 'Canales en diferido',
		library_settings: 'Películas y series',
		name_settings: 'Nombres',
		completion_settings: 'Completar con TMDB',
		user_limit_settings: 'Límites de usuarios',
		tuner_settings: 'Sintonizador',
		network_access: 'Acceso desde redes',
		history_settings: 'Historial',
		backup_settings: 'Copias de seguridad',
		proxy_settings: 'Motor',
	},
	advanced: 'Avanzado',
	advancedText: 'Estos valores sirven casi siempre. Cambia uno solo si sabes por qué.',
	toBackups: 'Crear y restaurar copias de seguridad',
	saidOf,
	fallback: (value) => `Predeterminado: ${value}`,
	reset: (label) => `Restablecer ${label}`,
	resetShort: 'Restablecer',
	own: 'cambiado',
	none: 'ninguno',
	yes: 'sí',
	no: 'no',
	size: (n) => `${number(n)} (${bytes(n)})`,
	saved: 'Guardado.',
	choices: {
		replace_own: 'sustituir la conexión del mismo dispositivo',
		refuse: 'rechazar la conexión nueva',
		off: 'nunca',
		unavailable: 'para flujos que ahora no pueden iniciarse',
		all: 'también para espectadores denegados y canales desconocidos',
		daily: 'cada día',
		weekly: 'cada semana',
		none: 'ninguno',
		watched: 'mientras alguien lo ve',
		always: 'siempre: ocupa una conexión',
		mark: 'se marca',
		cut: 'se marca, y se omite en una copia',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'como están',
		advanced: 'sin las partes de abajo',
		titles: 'una entrada por película',
		versions: 'una entrada por versión',
	},
};
