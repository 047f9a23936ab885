import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/health/text';
import type { Texts } from '../catalogue';

export const health: Texts<typeof text> = {
	good: 'Tout fonctionne',
	problems: (n) => `${number(n)} ${plural(n, 'problème', 'problèmes')}`,
	confinement: 'Confinement absent de cette machine',
	confinementHint:
		'Les extensions et les programmes s’exécutent sans ces limites. Chacune a une ligne qui l’ajoute.',
	parts: {
		landlock: 'Fichiers et ports (Landlock)',
		control_group: 'Mémoire et processeurs (control groups)',
	},
	overview: 'Aperçu',
	version: 'Version',
	channels: 'Chaînes',
	live: 'Chaînes en direct',
	viewers: 'Spectateurs',
	accounts: 'Sources actives',
	failing: 'Sources en échec',
	expiring: 'Accès qui expirent',
	disk: 'Espace disque libre',
	diskOf: (free, all) => `${free} sur ${all}`,
	store: 'Base de données',
	storeOf: (records, disk) => `${records} de données, ${disk} sur le disque`,
	readOnly: 'Les modifications sont refusées.',
	nodes: 'Nœuds du cluster',
	nodesOf: (members, all) => `${number(members)} sur ${number(all)} sont membres`,
	log: 'Journal',
	logTo: 'Voir le journal',
	logLevel: 'Lignes',
	logLevels: {
		error: 'Erreurs',
		warn: 'Avertissements et erreurs',
		info: 'Tout sauf détails',
		debug: 'Tout',
	},
	logSearch: 'Rechercher dans le journal',
	noLog: 'Aucune ligne de ce type depuis le démarrage.',
	time: 'Heure',
	level: 'Niveau',
	message: 'Message',
	warning: 'avertissement',
	error: 'erreur',
	fix: 'Aller au remède',
};
