// Problems of channels that their rows show: by colour, by a sign, and in words.

import type { IconName } from '$lib/ui';
import type { ChannelRow, StreamRow } from './filters';

export const PROBLEMS = ['streamless', 'stale', 'failing', 'unguided', 'unplayed'] as const;
export type ChannelProblem = (typeof PROBLEMS)[number];

/** How a problem looks. */
export const SIGNS: Record<ChannelProblem, { icon: IconName; tone: 'bad' | 'warn' | 'idle' }> = {
	streamless: { icon: 'stream', tone: 'bad' },
	stale: { icon: 'archive', tone: 'bad' },
	failing: { icon: 'warning', tone: 'bad' },
	unguided: { icon: 'guide', tone: 'warn' },
	unplayed: { icon: 'play', tone: 'idle' },
};

/** A stream that fails more often than it plays, as the filter of the gateway has it. It gives 50 to one of which it knows nothing. */
const FAILING_BELOW = 40;

/** What is known of a stream. */
export type StreamState = Pick<StreamRow, 'health' | 'is_stale'>;

/** Returns the problems of a channel. `state` returns what is known of a stream; without it, streams are not judged. */
export function problemsOf(
	row: Pick<ChannelRow, 'effective_epg_data_id'>,
	streams: readonly number[],
	state: (stream: number) => StreamState | undefined,
): ChannelProblem[] {
	const found: ChannelProblem[] = [];
	if (streams.length === 0) found.push('streamless');
	else {
		const known = streams.flatMap((it) => state(it) ?? []);
		if (known.length === streams.length) found.push(...ofStreams(known));
	}
	if (row.effective_epg_data_id === null) found.push('unguided');
	return found;
}

function ofStreams(all: readonly StreamState[]): ChannelProblem[] {
	const found: ChannelProblem[] = all.every((it) => it.is_stale) ? ['stale'] : [];
	const played = all.flatMap((it) => it.health ?? []);
	if (played.length === 0) found.push('unplayed');
	else if (played.length === all.length && played.every((it) => it.score < FAILING_BELOW))
		found.push('failing');
	return found;
}
