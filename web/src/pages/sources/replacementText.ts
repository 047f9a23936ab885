import { number, plural, texts } from '$lib/i18n';
import type { PairKey, UnpairedReason } from './replacement';

const streams = (n: number) => plural(n, '1 stream', `${number(n)} streams`);
const channels = (n: number) => plural(n, '1 channel', `${number(n)} channels`);

const keyOf: Record<PairKey, string> = {
	panel_id: 'Number at the panel',
	guide_id: 'Guide id',
	name: 'Name',
};

const reasonOf: Record<UnpairedReason, string> = {
	no_match: 'Nothing fits',
	ambiguous: 'Several fit equally well',
	excepted: 'Left out',
};

/** Texts about moving the channels of a source to another source. */
export const replacementText = texts('replacement', {
	intro:
		'Moves the channels of this source to another one, such as a new provider. Each stream is replaced by the one that fits best. Channels keep their numbers, names, favourites and recordings.',
	target: 'Replace with',
	choose: 'Choose a source',
	noTargets: 'No other source',
	noTargetsText: 'Add the new provider as a source and refresh it, then come back.',
	score: 'Least score of a pair in percent',
	scoreHint: 'From 85 to 100. A higher score leaves more streams as they are.',
	preview: 'Preview',
	counts: 'What would change',
	count: {
		channels: 'channels get streams of the other source',
		pairs: 'streams have a counterpart',
		unpaired: 'streams have none and stay',
		removed: 'channels that the other source made for the same streams are removed',
		kept: 'such channels stay, because they were changed or are in use',
	},
	foundBy: (key: PairKey, n: number) => `${keyOf[key]}: ${number(n)}`,
	keyOf,
	reasonOf,
	lists: 'Streams',
	listOf: { pairs: 'Pairs', unpaired: 'Without a counterpart' },
	columns: {
		name: 'Stream',
		replacement: 'Replaced by',
		host: 'Host',
		key: 'Found by',
		score: 'Score',
		reason: 'Why',
		channels: 'Channels',
	},
	listed: (n: number, of: number) => `${number(n)} of ${streams(of)} are listed.`,
	more: 'List more',
	nothing: 'No stream of this source has a counterpart.',
	leftOut: (n: number) => `${streams(n)} left out.`,
	apply: (n: number) => `Replace the streams of ${channels(n)}`,
	canUndo: 'You can undo this for 24 hours, here or in Activity.',
});
