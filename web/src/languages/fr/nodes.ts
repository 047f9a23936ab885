import { millis, number } from '$lib/i18n';
import type { text } from '../../pages/nodes/text';
import type { Texts } from '../catalogue';

export const nodes: Texts<typeof text> = {
	intro: 'Les passerelles de ce cluster, vues par celle qui répond.',
	alone: 'Cette passerelle n’est pas dans un cluster',
	aloneText:
		'Plusieurs passerelles peuvent agir comme une seule. L’exploitant le configure dans la section [cluster] du fichier de configuration.',
	disconnected: 'Les serveurs NATS du cluster sont injoignables',
	problem: 'Cette passerelle ne peut pas être membre',
	error: 'erreur',
	columns: {
		name: 'Nom',
		state: 'État',
		role: 'Rôle',
		channels: 'Chaînes',
		clients: 'Spectateurs',
		slots: 'Connexions aux fournisseurs',
		cpu: 'Processeurs',
		behind: 'Changements manquants',
		clock: 'Horloge',
		version: 'Version',
		seen: 'Vu',
	},
	own: 'répond ici',
	writer: 'écrit la configuration',
	actions: 'Actions',
	drain: 'Vider',
	drainAsk: (name) => `Vider «\u00a0${name}\u00a0»\u00a0?`,
	drainText:
		'Ses chaînes et ses tâches passent à d’autres nœuds, et les répartiteurs ne lui envoient plus de spectateurs. Les présents gardent leurs flux un temps : deux heures, sauf autre choix de l’exploitant.',
	drained: (name) => `${name} se vide.`,
	endDrain: 'Ne plus vider',
	drainEnded: (name) => `${name} peut de nouveau ouvrir des chaînes.`,
	drainEnds: (time) => `spectateurs jusqu’à ${time}`,
	clock: (ms) => (ms === 0 ? '0 ms' : `${ms < 0 ? '−' : '+'}${millis(Math.abs(ms))}`),
	written: (version) => `Les nœuds écrivent la version ${String(version)} de leurs données.`,
	readLater: (version) => `Tous lisent la version ${String(version)}.`,
	reads: (oldest, newest) =>
		oldest === newest ? `données ${String(newest)}` : `données ${String(oldest)} à ${String(newest)}`,
	unfit: 'doit être mis à jour',
	finalize: 'Finaliser',
	finalizeAsk: (version) =>
		`Faire écrire à tous les nœuds la version ${String(version)} de leurs données\u00a0?`,
	finalizeText:
		'Ensuite, d’anciennes versions de la passerelle ne peuvent plus rejoindre le cluster, et aucun nœud ne peut y revenir. C’est irréversible.',
	finalized: (version) => `Les nœuds écrivent maintenant la version ${String(version)} de leurs données.`,
	remove: 'Retirer',
	removeAsk: (name) => `Retirer «\u00a0${name}\u00a0» du cluster\u00a0?`,
	removeText:
		'Les autres nœuds refusent dès lors son certificat, et il s’arrête. Pour revenir, il lui faut un nouveau jeton.',
	removed: (name) => `${name} est retiré.`,
	add: 'Ajouter un nœud',
	addFull: 'full : ouvre les sources des fournisseurs et sert des spectateurs',
	addEdge: 'edge : sert des spectateurs, sans secrets des fournisseurs',
	addMake: 'Créer un jeton',
	addRun:
		'Configurez la section [cluster] sur la nouvelle machine, avec un dossier de données vide, et exécutez-y cette commande :',
	addCommand: 'Commande',
	addOnce: 'Le jeton vaut pour une machine et une heure. Il ne sera plus affiché.',
	states: {
		joining: 'arrive',
		alive: 'membre',
		draining: 'se vide',
		expired: 'ne répond pas',
		left: 'parti',
		unknown: 'inconnu',
	},
	roles: { full: 'full', edge: 'edge' },
	percent: (n) => `${number(n)}\u00a0%`,
	never: 'jamais',
};
