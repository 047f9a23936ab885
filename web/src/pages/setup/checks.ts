// The checks of the test play, from the timeline of the channel.

import type { Schemas } from '$lib/api';

export type Timeline = Schemas['ChannelTimeline'];
export type CheckName = 'slot' | 'connection' | 'packet' | 'picture';

export interface Check {
	name: CheckName;
	state: 'waiting' | 'good' | 'bad';
	/** Reason for people. */
	detail: string;
}

const STARTED = new Set(['started', 'reconnected', 'failed_over', 'switched', 'resumed', 'redirected']);

/**
 * Returns how far the newest run came. `isPicture`: whether the browser shows a picture; `null` while it is not decided.
 */
export function checksOf(
	timeline: Timeline | null,
	isPicture: boolean | null,
	playerProblem: string,
): Check[] {
	const entries = timeline?.runs[0]?.entries ?? [];
	const last = (name: string) => entries.findLast((it) => it.event === name);
	const isOpen = entries.some((it) => it.event === 'opening');
	const isStarted = entries.some((it) => STARTED.has(it.event));
	const noSlot = isOpen ? undefined : last('no_slot');
	// The reason of a failure is in the entry that lost the stream, or in the one that paused after all had failed.
	const failed = isStarted ? undefined : (last('lost') ?? last('resting') ?? last('gave_up'));
	const isConnected = isStarted || (failed !== undefined && failed.bytes_in > 0);
	const bad = (it: { detail: string; cause: string | null }) => it.detail || (it.cause ?? '');
	const check = (name: CheckName, isGood: boolean, reason: string | undefined): Check => ({
		name,
		state: isGood ? 'good' : reason === undefined ? 'waiting' : 'bad',
		detail: isGood ? '' : (reason ?? ''),
	});
	return [
		check('slot', isOpen || isStarted, noSlot && bad(noSlot)),
		check('connection', isConnected, isOpen && failed ? bad(failed) : undefined),
		check('packet', isStarted, isConnected && failed ? bad(failed) : undefined),
		check('picture', isPicture === true, isPicture === false ? playerProblem : undefined),
	];
}
