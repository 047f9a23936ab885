import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/settings/text';
import type { Texts } from '../catalogue';

/** Libellé et explication d’un réglage. */
type Said = readonly [label: string, hint?: string];

const networks = 'Réseaux séparés par des virgules, comme 192.168.0.0/16. Aussi : all, private, loopback.';
const seconds = 'En secondes.';
const inBytes = 'En octets.';
const cleaned =
	'Sans marques de langue et de qualité, comme EN - et [4K]. Le nom du fournisseur est conservé.';
const perLine = 'Une par ligne. Utilisées si choisi ci-dessus.';
const fields =
	'Dossiers et nom, avec {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} et {id}.';
const classes: Record<string, string> = {
	ui: 'Interface et API',
	streams: 'Flux',
	xc_api: 'Applications (panel)',
	m3u_epg: 'Playlists et guides',
	tuner: 'Tuner',
	metrics: 'Métriques',
};

const said: Record<string, Said> = {
	connect_timeout: ['Délai de connexion à un fournisseur', seconds],
	first_packet_timeout: ['Délai jusqu’aux premières données d’un flux', seconds],
	stall_timeout: ['Durée sans données avant qu’une source soit jugée perdue', seconds],
	silence_suspected_after: ['Durée sans données avant d’ouvrir un autre flux à côté', seconds],
	picture_timeout: [
		'Durée sans image avant qu’elle soit jugée perdue',
		'En secondes de l’émission. 0 : jamais.',
	],
	sound_timeout: ['Durée sans son avant qu’il soit jugé perdu', 'En secondes de l’émission. 0 : jamais.'],
	buffering_timeout: ['Durée de mesure de la vitesse d’une source', seconds],
	random_access_wait: ['Durée de recherche d’une première image dans une nouvelle source', seconds],
	start_lead: [
		'Partie de l’émission qu’une nouvelle source peut répéter pour commencer à une image clé',
		'En secondes. Les spectateurs sont ensuite en retard d’autant, au plus.',
	],
	start_timeout: ['Durée d’attente d’un spectateur pour une chaîne qui démarre', seconds],
	give_up_after: ['Durée de recherche d’une source avant que la chaîne s’arrête', seconds],
	channel_shutdown_delay: ['Durée pendant laquelle une chaîne continue sans spectateurs', seconds],
	new_client_behind_seconds: ['Retard sur les dernières données au début d’un spectateur', seconds],
	ring_seconds: ['Données passées gardées par chaîne, en durée', seconds],
	ring_bytes: ['Données passées gardées par chaîne, en taille', inBytes],
	ring_gop_bytes: ['Taille du dernier groupe d’images, toujours gardé', inBytes],
	recording_lead_seconds: ['Avance de lecture d’une source plus rapide que le temps réel', seconds],
	hls_height_max: ['Hauteur maximale de l’image des flux HLS à variantes', 'En lignes. Vide : toutes.'],
	hls_bits_per_second_max: ['Débit maximal des flux HLS à variantes', 'En bits par seconde. Vide : tous.'],
	ring_budget_bytes: [
		'Mémoire pour les données passées de toutes les chaînes',
		'En octets. Vide : un quart de la mémoire.',
	],
	slow_client_limit: ['Retards permis à un spectateur par minute'],
	return_to_preferred_after: [
		'Délai avant d’essayer de revenir au premier flux',
		'En secondes. Vide : pas de retour.',
	],
	at_limit: ['Quand un spectateur change de chaîne et que le compte est complet'],
	transcoders_max: ['Programmes simultanés pour les profils de sortie', '0 : aucun.'],
	default_stream_profile: ['Profil de flux'],
	default_user_agent: ['User agent'],
	default_output_profile: ['Profil de sortie'],
	reason_on_screen: ['Un clip avec la raison au lieu d’une erreur, pour les flux refusés'],
	time_zone: ['Fuseau horaire', 'Comme Europe/Paris. Les planifications l’utilisent.'],
	preferred_region: [
		'Pays des chaînes qui n’en nomment pas',
		'Deux lettres, comme FR. Sert à les associer à un guide.',
	],
	multicast_interface: [
		'Interface réseau pour le multicast',
		'Son nom ou son adresse, pour les groupes dont l’adresse n’en nomme pas. Vide : le système choisit.',
	],
	udp_receive_buffer_bytes: ['Tampon de réception de chaque source UDP ou RTP', inBytes],
	epg_match_mode: ['Comparaison des noms avec ceux d’un guide'],
	epg_match_ignore_prefixes: ['Débuts de noms qui ne comptent pas', perLine],
	epg_match_ignore_suffixes: ['Fins de noms qui ne comptent pas', perLine],
	epg_match_ignore_custom: ['Parties de noms qui ne comptent pas', perLine],
	epg_match_threshold: ['Certitude à partir de laquelle une association vaut', 'En pour cent, de 50 à 100.'],
	epg_match_after_refresh: ['Associer les chaînes après chaque actualisation d’un guide'],
	epg_placeholders: [
		'Émissions factices pour les chaînes sans guide',
		'Téléviseurs et serveurs multimédias ne montrent souvent une chaîne que si elle a des émissions.',
	],
	epg_placeholder_title: ['Titre des émissions factices', '{channel_name} est le nom de la chaîne.'],
	epg_placeholder_description: [
		'Description des émissions factices',
		'{channel_name} est le nom de la chaîne. Vide : aucune.',
	],
	epg_placeholder_minutes: ['Durée d’une émission factice', 'En minutes, de 5 à 1440.'],
	panel_rows: ['Films dans les applications'],
	strm_enabled: ['Export planifié des films et séries en fichiers STRM'],
	strm_folder: ['Dossier de l’export', 'Un chemin absolu.'],
	strm_user: [
		'Utilisateur dont les titres sont exportés',
		'Ils se lisent avec le mot de passe de lecteur de cet utilisateur.',
	],
	strm_nfo: ['Descriptions à côté des fichiers exportés (NFO)'],
	strm_cron_expression: [
		'Planification de l’export (cron)',
		'Minute, heure, jour du mois, mois, jour de la semaine.',
	],
	log_level: [
		'Niveau du journal',
		'error, warn, info, debug ou trace ; aussi par partie, comme info,actors=debug.',
	],
	login_password_for_players: ['Les lecteurs peuvent utiliser le mot de passe de connexion'],
	public_url: [
		'Adresse publique',
		'L’adresse à laquelle les clients joignent la passerelle, si ce n’est pas celle qu’ils utilisent.',
	],
	adult_without_user: ['Les appels sans utilisateur voient les chaînes pour adultes'],
	schedule_enabled: ['Sauvegardes planifiées'],
	schedule_frequency: ['Fréquence'],
	schedule_time: ['Heure', 'Heures et minutes, comme 03:30.'],
	schedule_day_of_week: ['Jour des sauvegardes hebdomadaires', '0 est dimanche.'],
	retention_count: ['Sauvegardes planifiées à conserver', '0 les conserve toutes.'],
	schedule_cron_expression: [
		'Planification (cron)',
		'Minute, heure, jour du mois, mois, jour de la semaine. Remplace les trois ci-dessus.',
	],
	tuner_count: ['Flux simultanés que le tuner propose'],
	friendly_name: ['Nom du tuner'],
	device_id: ['Identité du tuner', 'Lettres, chiffres et traits d’union.'],
	terminate_on_limit_exceeded: [
		'À la limite, arrêter un autre flux de l’utilisateur',
		'Sinon, le nouveau est refusé.',
	],
	terminate_oldest: ['Arrêter le plus ancien', 'Sinon, le plus récent.'],
	prioritize_single_client_channels: ['Arrêter d’abord les flux que personne d’autre ne regarde'],
	tv_template: ['Nom du fichier d’un épisode', fields],
	tv_fallback_template: ['Nom du fichier d’une émission sans saison ni épisode', fields],
	movie_template: ['Nom du fichier d’un film', fields],
	movie_fallback_template: ['Nom du fichier d’un film sans année', fields],
	pre_offset_minutes: ['Minutes enregistrées avant le début', 'Pour les nouveaux enregistrements.'],
	post_offset_minutes: ['Minutes enregistrées après la fin', 'Pour les nouveaux enregistrements.'],
	quota_bytes: ['Taille de tous les enregistrements', `${inBytes} 0\u00a0: sans limite.`],
	user_quota_bytes: ['Taille des enregistrements par utilisateur', `${inBytes} 0\u00a0: sans limite.`],
	retention_days: ['Jours de conservation des enregistrements', '0 les conserve.'],
	retention_free_bytes: [
		'Espace libre sur le disque des enregistrements',
		`${inBytes} 0 n’en supprime aucun pour cela.`,
	],
	reserve_minutes: [
		'Minutes avant un enregistrement pendant lesquelles sa connexion est réservée',
		'De nouveaux spectateurs ne l’obtiennent pas alors. 0 : aucune réservation.',
	],
	reserved_slots: [
		'Connexions réservées aux enregistrements',
		'Une ligne chacune : l’ID d’un compte, le nombre de connexions et, au choix, jours et heures, comme 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: [
		'Les enregistrements peuvent déconnecter des spectateurs',
		'Si une émission n’obtient pas de connexion autrement.',
	],
	comskip_enabled: ['Rechercher les publicités après chaque enregistrement', 'Avec le programme comskip.'],
	comskip_mode: ['Publicités trouvées', 'L’enregistrement reste tel quel. La copie est à côté.'],
	remux: [
		'Conteneur des enregistrements terminés',
		'Sans conteneur, les fichiers restent des flux de transport.',
	],
	write_nfo: ['Descriptions pour serveurs multimédias à côté des enregistrements (NFO)'],
	write_artwork: ['Images pour serveurs multimédias à côté des enregistrements'],
	recordings_in_players: [
		'Les lecteurs trouvent les enregistrements',
		'Comme films et séries des applications, et dans la playlist des enregistrements.',
	],
	standard_users_record: [
		'Les utilisateurs de niveau 1 enregistrent',
		'Ils ne trouvent et ne modifient que leurs propres enregistrements.',
	],
	ignore_same_channel_connections: ['Les flux d’une même chaîne comptent une fois'],
};

/** Ceux dont le nom a un autre sens dans leur groupe. */
const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Garder le replay des chaînes', 'Pour les chaînes sans choix propre.'],
		hours: ['Heures gardées par chaîne'],
		channel_bytes: ['Taille du replay d’une chaîne', inBytes],
		total_bytes: [
			'Taille du replay de toutes les chaînes',
			`${inBytes} Il diminue avant que la place manque aux enregistrements.`,
		],
	},
	name_settings: {
		clean_movies: ['Nettoyer les noms des films', cleaned],
		clean_series: ['Nettoyer les noms des séries', cleaned],
		clean_channels: [
			'Nettoyer les noms des chaînes',
			'De celles que créent les actualisations, et des nouvelles.',
		],
		clean_accounts: ['Comptes dont tous les noms sont nettoyés', 'Leurs ID, un par ligne.'],
		keep_accounts: ['Comptes dont les noms restent tels quels', 'Leurs ID, un par ligne.'],
		patterns: [
			'Motifs propres, appliqués d’abord',
			'Un par ligne : MOTIF => REMPLACEMENT. Précédé de movie:, series: ou channel: pour un seul type.',
		],
	},
	history_settings: {
		enabled: [
			'Conserver l’historique des débits et des spectateurs',
			'Dans des fichiers de taille fixe du dossier de données.',
		],
		users: [
			'Conserver l’historique de chaque utilisateur',
			'La désactivation supprime ce qui a été conservé.',
		],
		user_days: ['Jours de conservation de l’historique des utilisateurs', 'De 1 à 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Compléter les films et les séries',
			'Après les importations. Les titres sont reconnus par leur identifiant, ou par le nom et l’année ; si plusieurs conviennent, aucun n’est retenu.',
		],
		tmdb_api_key: [
			'Votre clé ou jeton d’accès',
			'De votre compte sur themoviedb.org. Elle n’est plus jamais affichée.',
		],
		completion_language: ['Langue des titres et des résumés', 'Par exemple fr ou fr-FR.'],
		tmdb_address: ['Adresse de l’API', 'Une autre seulement pour un miroir à vous.'],
		completion_titles_per_run: ['Titres par passage', 'De 1 à 100000. Le passage suivant fait le reste.'],
	},
	dvr_settings: { retention_count: ['Enregistrements conservés', '0 les conserve tous.'] },
};

/** Renvoie libellé et explication d’un réglage ; un réglage inconnu a son nom. */
function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}\u00a0: qui peut se connecter`, networks];
	if (part === 'anonymous') return [`${of}\u00a0: qui le peut sans utilisateur`, networks];
	return said[name] ?? [name];
}

export const settings: Texts<typeof text> = {
	search: 'Rechercher des réglages',
	noMatch: 'Aucun réglage trouvé',
	sectionsLabel: 'Sections',
	sections: {
		system_settings: 'Général',
		stream_settings: 'Flux',
		epg_settings: 'Guide',
		dvr_settings: 'Enregistrements',
		timeshift_settings: 'Replay des chaînes',
		library_settings: 'Films et séries',
		name_settings: 'Noms',
		completion_settings: 'Complément par TMDB',
		user_limit_settings: 'Limites des utilisateurs',
		tuner_settings: 'Tuner',
		network_access: 'Accès depuis les réseaux',
		history_settings: 'Historique',
		backup_settings: 'Sauvegardes',
		proxy_settings: 'Moteur',
	},
	advanced: 'Avancé',
	advancedText: 'Ces valeurs conviennent presque partout. N’en changez une que si vous savez pourquoi.',
	toBackups: 'Créer et restaurer des sauvegardes',
	saidOf,
	fallback: (value) => `Par défaut\u00a0: ${value}`,
	reset: (label) => `Réinitialiser ${label}`,
	resetShort: 'Valeur par défaut',
	own: 'modifié',
	none: 'aucun',
	yes: 'oui',
	no: 'non',
	size: (n) => `${number(n)} (${bytes(n)})`,
	saved: 'Enregistré.',
	choices: {
		replace_own: 'remplacer la connexion du même appareil',
		refuse: 'refuser la nouvelle connexion',
		off: 'jamais',
		unavailable: 'pour les flux qui ne peuvent pas démarrer en ce moment',
		all: 'aussi pour spectateurs refusés et chaînes inconnues',
		daily: 'chaque jour',
		weekly: 'chaque semaine',
		none: 'aucun',
		watched: 'tant que quelqu’un regarde',
		always: 'toujours, ce qui prend une connexion',
		mark: 'marquées',
		cut: 'marquées, et omises dans une copie',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'tels quels',
		advanced: 'sans les parties ci-dessous',
		titles: 'une entrée par film',
		versions: 'une entrée par version',
	},
};
