import { number, plural } from '$lib/i18n';
import type { replacementText } from '../../pages/sources/replacementText';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} flux`;
const keyOf = { panel_id: 'Numéro au panel', guide_id: 'ID du guide', name: 'Nom' };

export const replacement: Texts<typeof replacementText> = {
	intro:
		'Déplace les chaînes de cette source vers une autre, comme un nouveau fournisseur. Chaque flux est remplacé par celui qui convient le mieux. Les chaînes gardent numéros, noms, favoris et enregistrements.',
	target: 'Remplacer par',
	choose: 'Choisir une source',
	noTargets: 'Aucune autre source',
	noTargetsText: 'Ajoutez le nouveau fournisseur comme source, actualisez-la, puis revenez.',
	score: 'Score minimal d’une paire en pour cent',
	scoreHint: 'De 85 à 100. Un score plus haut laisse plus de flux tels quels.',
	preview: 'Aperçu',
	counts: 'Ce qui changerait',
	count: {
		channels: 'chaînes reçoivent des flux de l’autre source',
		pairs: 'flux ont un équivalent',
		unpaired: 'flux n’en ont pas et restent',
		removed: 'chaînes que l’autre source a créées pour les mêmes flux sont supprimées',
		kept: 'de ces chaînes restent, car modifiées ou utilisées',
	},
	foundBy: (key, n) => `${keyOf[key]}\u00a0: ${number(n)}`,
	keyOf,
	reasonOf: { no_match: 'Rien ne convient', ambiguous: 'Plusieurs conviennent aussi bien', excepted: 'Omis' },
	lists: 'Flux',
	listOf: { pairs: 'Paires', unpaired: 'Sans équivalent' },
	columns: {
		name: 'Flux',
		replacement: 'Remplacé par',
		host: 'Hôte',
		key: 'Trouvé par',
		score: 'Score',
		reason: 'Pourquoi',
		channels: 'Chaînes',
	},
	listed: (n, of) => `${number(n)} sur ${streams(of)} ${plural(n, 'listé', 'listés')}.`,
	more: 'En lister plus',
	nothing: 'Aucun flux de cette source n’a d’équivalent.',
	leftOut: (n) => `${streams(n)} omis.`,
	apply: (n) => `Remplacer les flux de ${number(n)} ${plural(n, 'chaîne', 'chaînes')}`,
	canUndo: 'Vous pouvez l’annuler pendant 24 heures, ici ou dans Activité.',
};
