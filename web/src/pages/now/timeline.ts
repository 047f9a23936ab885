import type { Schemas } from '$lib/api';

type Entry = Schemas['TimelineEntry'];
type Run = Schemas['TimelineRun'];

/** Part of a lane: what the stream did between two moments, in milliseconds since 1970. */
export interface Segment {
	kind: 'playing' | 'opening' | 'silent';
	from: number;
	until: number;
}

/** One stream, on one node of a cluster. */
export interface Lane {
	id: string;
	name: string;
	/** Empty without a cluster. */
	node: string;
	account: string;
	segments: Segment[];
	/** Moments at which it was lost or could not be opened. */
	losses: { at: number; cause: string }[];
}

/** Time during which nothing played. */
export interface Gap {
	from: number;
	until: number;
	cause: string;
	detail: string;
}

export interface Timeline {
	from: number;
	until: number;
	lanes: Lane[];
	gaps: Gap[];
}

const PLAYS = new Set(['started', 'reconnected', 'failed_over', 'switched', 'resumed']);
const ENDS = new Set(['ended', 'gave_up', 'redirected', 'yielded', 'resting']);

const time = (iso: string): number => new Date(iso).getTime();

/** Builds the lanes of a run, in the order in which its streams were tried first. `now` is the end of an active run. */
export function timelineOf(run: Run, now: number): Timeline {
	const from = time(run.started_at);
	const until = Math.max(run.ended_at ? time(run.ended_at) : now, from + 1);
	const lanes = new Map<string, Lane>();
	const gaps: Gap[] = [];
	const open = new Map<string, Segment>();
	let lastLoss: Entry | null = null;

	const nodeOf = (entry: Entry): string => entry.node ?? '';
	/** The streams of the node of an entry that are open. */
	const openOf = (entry: Entry): [string, Segment][] =>
		[...open].filter(([id]) => lanes.get(id)?.node === nodeOf(entry));

	const laneOf = (entry: Entry): Lane | null => {
		if (entry.stream_id === null) return null;
		const id = `${nodeOf(entry)}/${entry.stream_id}`;
		let lane = lanes.get(id);
		if (!lane) {
			lane = {
				id,
				node: nodeOf(entry),
				name: entry.stream_name ?? '',
				account: entry.account_name ?? '',
				segments: [],
				losses: [],
			};
			lanes.set(lane.id, lane);
		}
		return lane;
	};
	const close = (id: string, at: number): void => {
		const segment = open.get(id);
		if (segment) segment.until = Math.max(segment.from, at);
		open.delete(id);
	};
	const begin = (lane: Lane, kind: Segment['kind'], at: number): void => {
		close(lane.id, at);
		const segment = { kind, from: at, until };
		lane.segments.push(segment);
		open.set(lane.id, segment);
	};

	for (const entry of run.entries) {
		const at = time(entry.timestamp);
		const lane = laneOf(entry);
		if (entry.event === 'opening' && lane) begin(lane, 'opening', at);
		else if (entry.event === 'silent' && lane) begin(lane, 'silent', at);
		else if (PLAYS.has(entry.event) && lane) {
			for (const [id, segment] of openOf(entry))
				if (id !== lane.id && segment.kind !== 'opening') close(id, at);
			if (open.get(lane.id)?.kind !== 'playing') begin(lane, 'playing', at);
			// The gateway measures the gap; the start of the first stream is none.
			if (entry.gap_ms && entry.event !== 'started') {
				const cause = lastLoss?.cause ?? entry.cause ?? '';
				gaps.push({
					from: Math.max(from, at - entry.gap_ms),
					until: at,
					cause,
					detail: lastLoss?.detail || entry.detail,
				});
			}
		} else if (entry.event === 'lost' || entry.event === 'switch_failed') {
			if (lane) {
				close(lane.id, at);
				lane.losses.push({ at, cause: entry.cause ?? '' });
			}
			lastLoss = entry;
		} else if (ENDS.has(entry.event)) {
			for (const [id] of openOf(entry)) close(id, at);
		}
	}
	return { from, until, lanes: [...lanes.values()], gaps };
}

/** Returns the place of a moment in a timeline, as a fraction of its length. */
export const placeOf = (it: Timeline, at: number): number =>
	Math.min(1, Math.max(0, (at - it.from) / (it.until - it.from)));
