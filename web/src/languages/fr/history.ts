import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/history/text';
import type { Texts } from '../catalogue';

export const history: Texts<typeof text> = {
	intro:
		'Mesuré toutes les dix secondes et conservé sur cette passerelle : par cinq minutes pendant deux jours, par heure pendant 60 jours.',
	introNode: (node) =>
		`Mesuré toutes les dix secondes sur le nœud ${node}, qui conserve son propre historique : par cinq minutes pendant deux jours, par heure pendant 60 jours.`,
	scope: 'Afficher',
	scopes: {
		gateway: 'Toute la passerelle',
		account: 'Compte',
		channel: 'Chaîne',
		stream: 'Flux',
		user: 'Utilisateur',
	},
	choose: {
		account: 'Choisissez un compte pour voir son historique.',
		channel: 'Choisissez une chaîne pour voir son historique.',
		stream: 'Choisissez un flux pour voir son historique.',
		user: 'Choisissez un utilisateur pour voir l’historique.',
	},
	streams: 'Flux de la chaîne',
	nobody: 'Aucun choix',
	range: 'Période',
	ranges: { '6h': '6 heures', '24h': '24 heures', '7d': '7 jours', '60d': '60 jours' },
	off: 'L’historique est désactivé',
	offText: 'Rien n’est conservé. Il s’active dans les paramètres.',
	offUser: 'Aucun historique des utilisateurs n’est conservé',
	offUserText:
		'Les débits et les spectateurs de chaque utilisateur ne sont conservés que si les paramètres le prévoient.',
	toSettings: 'Ouvrir les paramètres',
	nothing: 'Rien de connu pour l’instant',
	nothingText: 'Les premières valeurs apparaissent après une minute.',
	charts: {
		rate: 'Débit',
		viewers: 'Spectateurs',
		slots: 'Connexions utilisées',
		health: 'Temps de lecture',
		failovers: 'Bascules',
		recordings: 'Disque des enregistrements',
	},
	series: {
		in: 'Reçu',
		out: 'Envoyé',
		viewers: 'Moyenne',
		viewersMax: 'Pic',
		slots: 'Utilisées',
		limit: 'Limite',
		recordings: 'Taille',
	},
	highest: (value) => `maximum ${value}`,
	said: (chart, parts) => `${chart} : ${parts}.`,
	seriesSaid: (name, newest, highest) => `${name} ${newest}, au plus ${highest}`,
	unknown: 'inconnu',
	noLimit: 'sans limite',
	failovers: (n) => `${number(n)} ${plural(n, 'bascule', 'bascules')}`,
	losses: (n) => `${number(n)} ${plural(n, 'échec', 'échecs')} de flux`,
	playing: (share) => `lecture pendant ${share} du temps d’utilisation`,
	notUsed: 'non utilisé',
	asTable: 'En tableau',
	time: 'Heure',
};
