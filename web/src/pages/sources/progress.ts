// The progress of a refresh, from `/api/m3u/refresh/{id}/` and from frames of the WebSocket.

import type { Schemas } from '$lib/api';

export type Refresh = Schemas['M3URefresh'];
type Phase = NonNullable<Refresh['phase']>;

/** What a refresh shows. */
export interface RefreshStatus {
	/** `never`: nothing was fetched yet. `ask`: many known streams are missing, and an admin decides. */
	state: 'never' | 'running' | 'good' | 'bad' | 'ask';
	phase: Phase | null;
	bytes: number;
	entries: number;
	created: number;
	updated: number;
	gone: number;
	message: string;
	/** The code of the message, if it has one. */
	code: unknown;
}

/** A frame `m3u_refresh`, as `docs/websocket.md` describes it. */
export type RefreshFrame = Readonly<Record<string, unknown>>;

const NEVER: RefreshStatus = {
	state: 'never',
	phase: null,
	bytes: 0,
	entries: 0,
	created: 0,
	updated: 0,
	gone: 0,
	message: '',
	code: null,
};

function stateOf(phase: Phase | null, outcome: unknown): RefreshStatus['state'] {
	if (phase === null) return 'never';
	if (phase !== 'done') return 'running';
	if (outcome === 'pending_confirmation') return 'ask';
	return outcome === 'success' ? 'good' : 'bad';
}

export function statusOf(refresh: Refresh | undefined): RefreshStatus {
	if (!refresh) return NEVER;
	return {
		state: stateOf(refresh.phase, refresh.outcome),
		phase: refresh.phase,
		bytes: refresh.bytes,
		entries: refresh.entries,
		created: refresh.streams_created,
		updated: refresh.streams_updated,
		gone: refresh.streams_gone,
		message: refresh.message ?? '',
		code: refresh.message_code,
	};
}

const PHASES: Record<string, Phase> = {
	waiting: 'waiting',
	downloading: 'fetching',
	parsing: 'parsing',
	comparing: 'comparing',
	writing: 'writing',
	done: 'done',
};

const numberOf = (value: unknown): number =>
	typeof value === 'number' && Number.isFinite(value) ? value : 0;

/** Returns the status that a frame reports; `null` for a frame that this page does not understand. */
export function statusOfFrame(frame: RefreshFrame): RefreshStatus | null {
	const phase = typeof frame.action === 'string' ? (PHASES[frame.action] ?? null) : null;
	if (phase === null) return null;
	return {
		state: stateOf(phase, frame.status),
		phase,
		bytes: numberOf(frame.bytes),
		entries: numberOf(frame.streams_processed),
		created: numberOf(frame.streams_created),
		updated: numberOf(frame.streams_updated),
		gone: numberOf(frame.streams_stale),
		message: typeof frame.message === 'string' ? frame.message : '',
		code: frame,
	};
}

/** Returns how much of a list was read, by the length of the last good one; `undefined` while that is unknown. */
export function fraction(status: RefreshStatus, lastEntries: number): number | undefined {
	if (status.state !== 'running' || lastEntries === 0 || status.entries === 0) return undefined;
	return Math.min(0.99, status.entries / lastEntries);
}

/** The shapes for states of a refresh. */
export const SHAPES = {
	never: 'idle',
	running: 'opening',
	good: 'playing',
	bad: 'failed',
	ask: 'resting',
} as const;
