import { number } from '$lib/i18n';
import type { text } from '../../pages/common/guide/text';
import type { Texts } from '../catalogue';

export const guideChoice: Texts<typeof text> = {
	title: (name) => `Guide de ${name}`,
	present: 'Chaîne du guide :',
	presentById: 'Chaîne du guide de même ID :',
	noPresent: 'Cette chaîne n’a pas de chaîne du guide.',
	suggestions: 'Suggestions',
	decisions: {
		link: 'Une chaîne du guide convient.',
		tie: 'Plusieurs chaînes du guide conviennent aussi bien. Choisissez-en une.',
		below_threshold: 'Aucune chaîne du guide ne convient assez. Voici les plus proches.',
		no_candidate: 'Aucune chaîne du guide n’a un nom semblable.',
		no_name: 'Le nom de la chaîne n’a pas de mot à comparer.',
	},
	score: (score) => `${number(score)}\u00a0%`,
	use: 'Utiliser',
	useOne: (name, key) => `Utiliser ${name} (${key})`,
	useChosen: 'Utiliser le choix',
	other: 'Autre chaîne du guide',
	otherHint: 'Saisissez une partie de son nom ou de son ID.',
	unlink: 'Retirer la chaîne du guide',
	noSources: 'Aucun guide',
	noSourcesText: 'Ajoutez d’abord un guide dans Sources.',
};
