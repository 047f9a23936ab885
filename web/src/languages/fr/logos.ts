import { bytes, number, plural } from '$lib/i18n';
import type { text } from '../../pages/logos/text';
import type { Texts } from '../catalogue';

const channelCount = (n: number) => `${number(n)} ${plural(n, 'chaîne', 'chaînes')}`;
const logoCount = (n: number) => `${number(n)} ${plural(n, 'logo', 'logos')}`;

export const logos: Texts<typeof text> = {
	logos: logoCount,
	channels: channelCount,
	search: 'Rechercher des logos',
	use: 'Usage',
	uses: { any: 'Utilisés ou non', used: 'Utilisés par des chaînes', unused: 'Inutilisés' },
	columns: { name: 'Nom', address: 'Adresse', channels: 'Chaînes' },
	add: 'Ajouter un logo',
	deleteUnused: 'Supprimer les logos inutilisés',
	deleteUnusedTitle: 'Supprimer tous les logos qu’aucune chaîne n’utilise ?',
	deleteText: 'Les chaînes perdent les logos supprimés. Vous pouvez l’annuler pendant un jour.',
	deleteMany: (n) => `Supprimer ${logoCount(n)}`,
	question: (action) => `${action}\u00a0?`,
	batches: (n) => `${logoCount(n)} au plus peuvent être supprimés à la fois.`,
	emptyTitle: 'Aucun logo',
	emptyText: 'Les logos viennent des playlists ou sont ajoutés ici.',
	noMatch: 'Aucun logo trouvé',
	newTitle: 'Ajouter un logo',
	wayLabel: 'Origine du logo',
	ways: { url: 'Adresse', file: 'Fichier' },
	name: 'Nom',
	nameHint: 'Par défaut, celui du fichier.',
	url: 'Adresse de l’image',
	file: 'Image',
	fileHint: (n) => `PNG, JPEG, WebP, GIF ou SVG, jusqu’à ${bytes(n)}.`,
	fileMissing: 'Choisissez un fichier.',
	uploaded: 'envoyé',
	usedBy: (n) => (n === 0 ? 'Aucune chaîne ne l’utilise.' : `Utilisé par ${channelCount(n)}\u00a0:`),
	saved: 'Enregistré.',
	uploading: 'Envoi',
};
