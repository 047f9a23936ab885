import type { text } from '../../pages/backups/text';
import type { Texts } from '../catalogue';

export const backups: Texts<typeof text> = {
	intro:
		'Une sauvegarde contient la configuration avec tous les utilisateurs, chaînes et sources, et les fichiers envoyés. Elle ne contient pas les enregistrements.',
	make: 'Créer une sauvegarde',
	makeTitle: 'Créer une sauvegarde',
	makeText:
		'Les secrets d’une sauvegarde, comme les identifiants des fournisseurs, sont chiffrés : avec la phrase secrète, ou sinon avec le fichier de clé de cette installation.',
	passphrase: 'Phrase secrète',
	passphraseHint:
		'Avec elle, la sauvegarde peut être restaurée sur toute machine. Sans elle, personne ne le peut. Vide : le fichier de clé est utilisé.',
	add: 'Ajouter une sauvegarde depuis un fichier',
	addHint: 'Une archive (.tar.gz) créée par ce Headwater ou un autre.',
	uploading: 'Envoi de la sauvegarde',
	checking: 'Vérification de la sauvegarde',
	added: (name) => `${name} ajoutée.`,
	list: 'Sauvegardes du dossier de données',
	columns: {
		name: 'Nom',
		created: 'Créée',
		size: 'Taille',
		version: 'Version',
		secret: 'Se restaure avec',
		actions: 'Actions',
	},
	secrets: { passphrase: 'sa phrase secrète', key_file: 'le fichier de clé' },
	noBackup: 'pas une sauvegarde',
	none: 'Aucune sauvegarde',
	noneText: 'Créez-en une maintenant, et laissez la planification en créer une chaque jour.',
	download: 'Télécharger',
	downloadOf: (name) => `Télécharger ${name}`,
	restore: 'Restaurer',
	restoreOf: (name) => `Restaurer ${name}`,
	deleteOf: (name) => `Supprimer ${name}`,
	deleteTitle: (name) => `Supprimer ${name}\u00a0?`,
	deleteText: 'Elle ne pourra plus être restaurée, sauf si vous l’avez téléchargée.',
	deleted: 'Supprimée.',
	restoreTitle: 'Restaurer une sauvegarde',
	restoreText: (name, made) =>
		`Tout revient à l’état de ${name}, créée ${made}. Les modifications faites depuis sont perdues, y compris les utilisateurs et leurs mots de passe. Les flux s’arrêtent au redémarrage de la passerelle.`,
	key: 'Contenu du fichier de clé',
	keyHint: 'Seulement si une autre installation a créé la sauvegarde. Sinon, laissez vide.',
	tasks: {
		make: {
			pending: 'La sauvegarde attend',
			running: 'La sauvegarde est en cours',
			completed: 'La sauvegarde est prête.',
			failed: 'La sauvegarde n’a pas été créée',
		},
		restore: {
			pending: 'La restauration attend',
			running: 'La sauvegarde est vérifiée et restaurée',
			completed: 'La sauvegarde est restaurée.',
			failed: 'La sauvegarde n’a pas été restaurée. Rien n’a changé',
		},
	},
	lost: 'La passerelle ne connaît plus cette tâche. Elle a peut-être redémarré.',
	schedule: 'Planification',
	scheduleText:
		'Les sauvegardes planifiées n’ont pas de phrase secrète : conservez aussi le fichier de clé de cette installation.',
	enabled: 'Planifier des sauvegardes',
	frequency: 'Fréquence',
	frequencies: { daily: 'chaque jour', weekly: 'chaque semaine' },
	time: 'Heure',
	timeHint: 'Heures et minutes dans le fuseau horaire des réglages, par exemple 03:30.',
	day: 'Jour',
	retention: 'Sauvegardes planifiées à conserver',
	retentionHint: '0 les conserve toutes. Les autres ne sont jamais supprimées par la planification.',
	cron: 'Planification (cron)',
	cronHint:
		'Minute, heure, jour du mois, mois, jour de la semaine. Remplace les trois champs ci-dessus, sauf si vide.',
	saved: 'Enregistré.',
};
