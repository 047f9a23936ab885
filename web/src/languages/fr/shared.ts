import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/common/text';
import type { Texts } from '../catalogue';

const batches = (n: number) => `${number(n)} ${plural(n, 'lot', 'lots')}`;

export const shared: Texts<typeof text> = {
	xtreamTitle: 'Applications qui demandent un serveur, un nom d’utilisateur et un mot de passe',
	server: 'Serveur',
	username: 'Nom d’utilisateur',
	password: 'Mot de passe',
	playlistTitle: 'Lecteurs qui acceptent des adresses',
	kinds: {
		xtream: 'Serveur',
		m3u: 'Playlist (M3U)',
		xmltv: 'Guide (XMLTV)',
		m3u_with_key: 'Playlist avec clé d’API',
		xmltv_with_key: 'Guide avec clé d’API',
		recordings: 'Enregistrements (M3U)',
		recordings_guide: 'Guide des enregistrements (XMLTV)',
		tuner: 'Tuner pour serveurs multimédias',
	},
	ofProfile: (kind, profile) => `${kind}, ${profile}`,
	holdsPassword: 'Ces adresses contiennent le mot de passe. Qui en a une peut regarder.',
	withKeyTitle: 'Adresses qui demandent un en-tête',
	withKey: (header) => `Les programmes envoient la clé d’API dans l’en-tête ${header}.`,
	loopback: (url) =>
		`${url} n’est accessible que depuis cette machine. Ouvrez cette page à l’adresse de la machine dans votre réseau, ou indiquez l’adresse publique dans les réglages.`,
	allowNetworks: 'Modifier les réseaux autorisés',
	favourite: (name) => `Favori\u00a0: ${name}`,
	sleep: {
		title: 'Minuterie de sommeil',
		after: 'Les flux s’arrêtent après',
		start: 'Démarrer',
		change: 'Modifier',
		remove: 'Retirer la minuterie',
		endsAt: (time, when) => `Tous les flux s’arrêtent à ${time} (${when}).`,
		isSet: 'La minuterie est réglée.',
		isRemoved: 'La minuterie est retirée.',
	},
	batch: (done, of) => `${number(done)} sur ${batches(of)}`,
	stoppedAfter: (done, of, reason) => `${number(done)} sur ${batches(of)}, puis\u00a0: ${reason}`,
	undone: 'Action annulée.',
	pagesOf: (label) => `Pages\u00a0: ${label}`,
	older: 'Plus anciens',
	newer: 'Plus récents',
	range: (from, until, all) => `${number(from)} à ${number(until)} sur ${number(all)}`,
	order: {
		moveUp: (name) => `Monter ${name}`,
		moveDown: (name) => `Descendre ${name}`,
		moveTo: (name) => `Position de ${name}`,
		movedTo: (name, n) => `${name} est en position ${number(n)}`,
		shown: (n, of) => `${number(n)} sur ${number(of)}`,
	},
};
