import type { repositoriesText } from '../../pages/plugins/repositoriesText';
import type { Texts } from '../catalogue';

export const pluginRepositories: Texts<typeof repositoriesText> = {
	title: 'Dépôts de plugins',
	back: 'Tous les plugins',
	about:
		'Un dépôt propose des plugins avec leurs versions et leurs sommes de contrôle. Chaque archive est vérifiée avant l’installation, et rien n’en est exécuté avant que vous l’activiez.',
	add: 'Ajouter un dépôt',
	url: 'Adresse',
	urlHint: 'Celle de son manifeste, par exemple https://example.com/manifest.json.',
	key: 'Clé publique',
	keyHint:
		'Facultatif : une clé OpenPGP de confiance. Seules les listes signées avec elle sont alors acceptées.',
	refresh: 'Actualiser',
	refreshOf: (name) => `Actualiser ${name}`,
	remove: 'Retirer',
	removeOf: (name) => `Retirer ${name}`,
	removeTitle: (name) => `Retirer le dépôt « ${name} » ?`,
	removeText: 'Les plugins qui en proviennent restent installés.',
	verified: 'signé avec votre clé',
	signature: {
		not_checked: 'signature non vérifiée : aucune clé',
		not_signed: 'non signé',
	},
	fetched: (at) => `Dernière lecture : ${at}`,
	plugins: 'Plugins disponibles',
	none: 'Aucun plugin',
	deprecated: 'obsolète',
	isInstalled: (version) => `installé : ${version}`,
	install: 'Installer',
	installOf: (name) => `Installer ${name}`,
	update: 'Mettre à jour',
	updateOf: (name) => `Mettre à jour ${name}`,
	by: (author, license, repository) => [author, license, repository].filter(Boolean).join(' · '),
	installed: (name, version) => `${name} ${version} est installé.`,
	unsignedTitle: (name) => `Installer « ${name} » sans signature vérifiée ?`,
	unsignedText:
		'La somme de contrôle montre que l’archive est celle que le dépôt indique. Sans signature, personne ne répond du dépôt lui-même.',
	replaceTitle: 'Remplacer le plugin installé ?',
	replaceText: (reason) => `${reason}. Ses paramètres et ses fichiers restent.`,
	replace: 'Remplacer',
};
