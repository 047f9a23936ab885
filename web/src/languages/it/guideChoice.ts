import { number } from '$lib/i18n';
import type { text } from '../../pages/common/guide/text';
import type { Texts } from '../catalogue';

export const guideChoice: Texts<typeof text> = {
	title: (name) => `Guida di ${name}`,
	present: 'Canale della guida:',
	presentById: 'Canale della guida con lo stesso ID:',
	noPresent: 'Questo canale non è abbinato alla guida.',
	suggestions: 'Suggerimenti',
	decisions: {
		link: 'Un canale della guida corrisponde.',
		tie: 'Più canali della guida corrispondono allo stesso modo. Scegline uno.',
		below_threshold: 'Nessun canale della guida corrisponde abbastanza. Questi sono i più simili.',
		no_candidate: 'Nessun canale della guida ha un nome simile.',
		no_name: 'Il nome del canale non ha parole da confrontare.',
	},
	score: (score) => `${number(score)} %`,
	use: 'Usa',
	useOne: (name, key) => `Usa ${name} (${key})`,
	useChosen: 'Usa quello scelto',
	other: 'Un altro canale della guida',
	otherHint: 'Scrivi parte del nome o dell’ID.',
	unlink: 'Togli il canale della guida',
	noSources: 'Ancora nessuna guida',
	noSourcesText: 'Aggiungi prima una guida in Sorgenti.',
};
