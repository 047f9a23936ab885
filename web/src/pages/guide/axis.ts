// The time axis of the grid: times in milliseconds since 1970, distances in pixels.

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const HALF_HOUR_MS = HOUR_MS / 2;
/** Hours that are kept together. */
export const BLOCK_MS = 2 * HOUR_MS;
export const PX_PER_HOUR = 300;
/** Days of the axis before today, as many as guides keep by default, and after it. */
const DAYS_BEFORE = 7;
const DAYS_AFTER = 14;

export interface Axis {
	from: number;
	until: number;
}

export interface Programme {
	id: number | string;
	start_time: string;
	end_time: string;
	/** As the guide writes it, with marks. */
	display_title: string;
}

/** A part of the row of a channel: a programme, or a gap. */
export interface Cell<P extends Programme> {
	programme: P | null;
	from: number;
	until: number;
}

/** Returns the axis that begins with a whole day. */
export function axisAt(now: number): Axis {
	const day = new Date(now);
	day.setHours(0, 0, 0, 0);
	return { from: day.getTime() - DAYS_BEFORE * DAY_MS, until: day.getTime() + (DAYS_AFTER + 1) * DAY_MS };
}

/** Returns the beginning of the day some days after that of a time. Days may have 23 or 25 hours. */
export function dayStart(time: number, days: number): number {
	const day = new Date(time);
	day.setHours(0, 0, 0, 0);
	day.setDate(day.getDate() + days);
	return day.getTime();
}

export const widthOf = (ms: number): number => (ms / HOUR_MS) * PX_PER_HOUR;
export const xOf = (axis: Axis, time: number): number => widthOf(time - axis.from);
export const timeOf = (axis: Axis, x: number): number => axis.from + (x / PX_PER_HOUR) * HOUR_MS;
export const clampTime = (axis: Axis, time: number): number =>
	Math.min(Math.max(time, axis.from), axis.until - 1);

/** Returns the half hours in a span of time. */
export function ticks(axis: Axis, from: number, until: number): number[] {
	const first = Math.max(0, Math.ceil((from - axis.from) / HALF_HOUR_MS));
	const last = Math.min(
		Math.ceil((axis.until - axis.from) / HALF_HOUR_MS),
		Math.ceil((until - axis.from) / HALF_HOUR_MS),
	);
	return Array.from({ length: Math.max(0, last - first) }, (_, n) => axis.from + (first + n) * HALF_HOUR_MS);
}

/** Returns the start of the half hour before a time, where the view begins so that the running programmes show. */
export const viewStart = (axis: Axis, now: number): number =>
	axis.from + Math.floor((now - axis.from) / HALF_HOUR_MS) * HALF_HOUR_MS;

/** Returns the numbers of the blocks that cover a span of time. */
export function blocksOf(from: number, until: number): number[] {
	const first = Math.floor(from / BLOCK_MS);
	return Array.from({ length: Math.max(1, Math.ceil(until / BLOCK_MS) - first) }, (_, n) => first + n);
}

/**
 * Returns the cells of a row in a span of time, with its gaps. Requests overlap, so programmes may occur twice; a programme
 * ends where the next one begins.
 */
export function cellsOf<P extends Programme>(
	programmes: readonly P[],
	from: number,
	until: number,
): Cell<P>[] {
	const timed = programmes
		.map((it) => ({ programme: it, from: Date.parse(it.start_time), until: Date.parse(it.end_time) }))
		.filter((it) => it.until > it.from)
		.sort((a, b) => a.from - b.from);
	const cells: Cell<P>[] = [];
	let at = from;
	timed.forEach((it, n) => {
		const next = timed[n + 1];
		if (next && next.from <= it.from) return;
		const end = next ? Math.min(it.until, next.from) : it.until;
		if (end <= from || it.from >= until) return;
		if (it.from > at) cells.push({ programme: null, from: at, until: it.from });
		cells.push({ programme: it.programme, from: it.from, until: end });
		at = end;
	});
	if (at < until && cells.length > 0) cells.push({ programme: null, from: at, until });
	return cells;
}
