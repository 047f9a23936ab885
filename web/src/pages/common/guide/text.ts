import { number, texts } from '$lib/i18n';

/** Texts of the choice of a guide channel. */
export const text = texts('guideChoice', {
	title: (name: string) => `Guide of ${name}`,
	present: 'Guide channel:',
	presentById: 'Guide channel with the same guide id:',
	noPresent: 'This channel has no guide channel.',
	suggestions: 'Suggestions',
	decisions: {
		link: 'One guide channel fits.',
		tie: 'Several guide channels fit equally well. Choose one.',
		below_threshold: 'No guide channel fits well enough. These are the most similar ones.',
		no_candidate: 'No guide channel has a similar name.',
		no_name: 'The name of the channel has no word to compare.',
	},
	score: (score: number) => `${number(score)} %`,
	use: 'Use',
	useOne: (name: string, key: string) => `Use ${name} (${key})`,
	useChosen: 'Use the chosen one',
	other: 'Another guide channel',
	otherHint: 'Type a part of its name or id.',
	unlink: 'Remove the guide channel',
	noSources: 'No guide yet',
	noSourcesText: 'Add a guide under Sources first.',
});
