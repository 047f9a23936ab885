/** The charts of an answer of the gateway. */
import type { Schemas } from '$lib/api';
import { bytes, kbps, number, percent } from '$lib/i18n';
import { text } from './text';

export type Answer = Schemas['History'];
export type Values = (number | null)[];

export const SCOPES = ['gateway', 'account', 'channel', 'stream', 'user'] as const;
export type Scope = (typeof SCOPES)[number];

/** Lengths of time that can be chosen, in seconds. */
export const RANGES = { '6h': 21_600, '24h': 86_400, '7d': 604_800, '60d': 5_184_000 } as const;
export type Range = keyof typeof RANGES;
export const DEFAULT_RANGE: Range = '24h';
/** Steps that fit beside each other on a wide screen. */
const POINTS = 300;

export const isScope = (it: unknown): it is Scope => SCOPES.includes(it as Scope);
export const isRange = (it: unknown): it is Range => typeof it === 'string' && Object.hasOwn(RANGES, it);

/** Returns the parameters of a request, whose end is `now` in milliseconds since 1970. */
export function queryOf(scope: Scope, id: number | undefined, range: Range, now: number) {
	const from = new Date(now - RANGES[range] * 1000).toISOString();
	return { scope, id, from, until: new Date(now).toISOString(), points: POINTS };
}

/** A line of a chart. */
export interface Line {
	key: string;
	name: string;
	values: Values;
	/** One of the colours of series. */
	colour: 1 | 2 | 3;
	/** A limit is dashed and has no filled area. */
	dashed?: boolean;
	area?: boolean;
}

/** Several lines over time. */
export interface LineChart {
	key: string;
	title: string;
	lines: Line[];
	format: (value: number) => string;
}

/** State of a step of a strip. */
export type StripState = 'playing' | 'partly' | 'failing' | 'idle' | 'unknown';

/** One state for each step. */
export interface Strip {
	key: string;
	title: string;
	states: StripState[];
	/** Each step in words. */
	words: string[];
	/** The whole strip in words. */
	summary: string;
}

const last = (values: Values): number | null => values.findLast((it) => it !== null) ?? null;
const highest = (values: Values): number | null =>
	values.reduce((max, it) => (it !== null && (max === null || it > max) ? it : max), null);
export const sum = (values: Values): number => values.reduce<number>((all, it) => all + (it ?? 0), 0);

/** Returns the newest and the highest value of a line as texts; `null` if it has none. */
export function extremes(line: Line, format: (value: number) => string) {
	const [newest, most] = [last(line.values), highest(line.values)];
	return newest === null || most === null ? null : { newest: format(newest), highest: format(most) };
}

/** Returns a chart in one sentence. */
export function sentence(chart: LineChart): string {
	const words = text();
	const parts = chart.lines.map((line) => {
		const found = extremes(line, chart.format);
		return found
			? words.seriesSaid(line.name, found.newest, found.highest)
			: `${line.name} ${line.dashed ? words.noLimit : words.unknown}`;
	});
	return words.said(chart.title, parts.join('; '));
}

/** Returns whether anything is known. */
export const isEmpty = (answer: Answer): boolean =>
	Object.values(answer.series).every((it) => it === null || it.every((value) => value === null));

/** Returns the charts with lines of an answer. */
export function lineCharts({ series: it }: Answer): LineChart[] {
	const { charts, series: names } = text();
	const charted: (LineChart & { isThere: unknown })[] = [
		{
			isThere: it.bitrate_in_kbps ?? it.bitrate_out_kbps,
			key: 'rate',
			title: charts.rate,
			format: kbps,
			lines: [
				...(it.bitrate_in_kbps ? [line('in', names.in, it.bitrate_in_kbps, 1)] : []),
				...(it.bitrate_out_kbps ? [line('out', names.out, it.bitrate_out_kbps, 2)] : []),
			],
		},
		{
			isThere: it.viewers_max,
			key: 'viewers',
			title: charts.viewers,
			format: number,
			lines: [
				{ ...line('viewers', names.viewers, it.viewers ?? [], 1), area: true },
				line('viewersMax', names.viewersMax, it.viewers_max ?? [], 3),
			],
		},
		{
			isThere: it.slots_max,
			key: 'slots',
			title: charts.slots,
			format: number,
			lines: [
				{ ...line('slots', names.slots, it.slots_max ?? [], 1), area: true },
				// A limit of 0 is none.
				{
					...line(
						'limit',
						names.limit,
						(it.slots_limit ?? []).map((n) => n || null),
						2,
					),
					dashed: true,
				},
			],
		},
		{
			isThere: it.recording_bytes && highest(it.recording_bytes),
			key: 'recordings',
			title: charts.recordings,
			format: bytes,
			lines: [{ ...line('recordings', names.recordings, it.recording_bytes ?? [], 1), area: true }],
		},
	];
	return charted.filter((chart) => chart.isThere).map(({ isThere: _, ...chart }) => chart);
}

const line = (key: string, name: string, values: Values, colour: Line['colour']): Line => ({
	key,
	name,
	values,
	colour,
});

/** Returns the strips of an answer: of a channel or stream its time playing, and failovers. */
export function strips({ series: it }: Answer): Strip[] {
	const found: Strip[] = [];
	if (it.playing_seconds && it.failing_seconds)
		found.push(healthStrip(it.playing_seconds, it.failing_seconds));
	if (it.failovers && it.losses) found.push(failoverStrip(it.failovers, it.losses));
	return found;
}

/** Returns the share of the time in use in which a channel played; `null` if it was not in use. */
export function shareOf(playing: number, failing: number): number | null {
	return playing + failing > 0 ? playing / (playing + failing) : null;
}

function healthStrip(playing: Values, failing: Values): Strip {
	const words = text();
	const shares = playing.map((it, i) => (it === null ? undefined : shareOf(it, failing[i] ?? 0)));
	const whole = shareOf(sum(playing), sum(failing));
	return {
		key: 'health',
		title: words.charts.health,
		states: shares.map(stateOf),
		words: shares.map((it) =>
			it == null ? words[it === null ? 'notUsed' : 'unknown'] : words.playing(percent(it)),
		),
		summary: whole === null ? words.notUsed : words.playing(percent(whole)),
	};
}

function stateOf(share: number | null | undefined): StripState {
	if (share === undefined) return 'unknown';
	if (share === null) return 'idle';
	if (share === 1) return 'playing';
	return share === 0 ? 'failing' : 'partly';
}

function failoverStrip(failovers: Values, losses: Values): Strip {
	const words = text();
	const state = (it: number | null, i: number): StripState => {
		if (it === null) return 'unknown';
		if (it > 0) return 'partly';
		return (losses[i] ?? 0) > 0 ? 'failing' : 'idle';
	};
	const said = (n: number, lost: number): string => `${words.failovers(n)}, ${words.losses(lost)}`;
	return {
		key: 'failovers',
		title: words.charts.failovers,
		states: failovers.map(state),
		words: failovers.map((it, i) => (it === null ? words.unknown : said(it, losses[i] ?? 0))),
		summary: said(sum(failovers), sum(losses)),
	};
}

/** Returns the start of each step, in seconds since 1970. */
export function timesOf(answer: Pick<Answer, 'start' | 'step_seconds' | 'points'>): number[] {
	const start = Date.parse(answer.start) / 1000;
	return Array.from({ length: answer.points }, (_, i) => start + i * answer.step_seconds);
}

/** Rows of a table; a step in which nothing is known has none. The newest come first. */
export function tableOf(times: number[], columns: ((i: number) => string | null)[]) {
	return times
		.map((at, i) => ({ at, cells: columns.map((it) => it(i)) }))
		.filter((it) => it.cells.some((cell) => cell !== null))
		.reverse();
}
