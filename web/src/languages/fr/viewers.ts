import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/viewers/text';
import type { Texts } from '../catalogue';

const viewerCount = (n: number) => `${number(n)} ${plural(n, 'spectateur', 'spectateurs')}`;

export const viewers: Texts<typeof text> = {
	count: viewerCount,
	selected: (n, of) => `${number(n)} sur ${viewerCount(of)}`,
	stale: (seconds) => `périmé, ${number(seconds)} s`,
	search: 'Rechercher utilisateur, appareil, adresse, chaîne ou émission',
	kind: 'Quoi',
	anyKind: 'tout',
	kinds: { live: 'chaînes en direct', title: 'films et séries', past: 'replay des chaînes' },
	format: 'Format',
	any: 'tous',
	node: 'Nœud',
	columns: {
		user: 'Utilisateur',
		device: 'Appareil',
		address: 'Adresse',
		name: 'Regarde',
		seconds: 'Depuis',
		rate: 'Débit',
		lost: 'Pertes',
		format: 'Format',
		node: 'Nœud',
		stop: 'Déconnecter',
	},
	anonymous: 'sans identification',
	from: (time) => `à partir de ${time}`,
	watching: (time) => `depuis ${time}`,
	formats: {
		mpegts: 'MPEG-TS',
		'hls-ts': 'HLS (MPEG-TS)',
		'hls-fmp4': 'HLS (fMP4)',
		'll-hls': 'HLS à faible latence',
		fmp4: 'fMP4',
		udp: 'sortie UDP',
		rtp: 'sortie RTP',
	},
	file: 'fichier',
	stop: (name) => `Déconnecter ${name}`,
	none: 'Personne ne regarde',
	noneText: 'Les spectateurs de chaînes, de films, de séries et de replay apparaissent ici.',
	noneOfUser: 'Cet utilisateur ne regarde rien en ce moment.',
	noMatch: 'Aucun spectateur trouvé',
	clear: 'Afficher tous les spectateurs',
	devices: {
		applePlayer: 'Lecteur Apple',
		androidPlayer: 'Lecteur Android',
		androidApp: 'Application Android',
		lgTelevision: 'Téléviseur LG',
		samsungTelevision: 'Téléviseur Samsung',
	},
};
