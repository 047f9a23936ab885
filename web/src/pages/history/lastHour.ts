/** Small plots of the last hour. */
import type { Schemas } from '$lib/api';
import { kbps, number } from '$lib/i18n';
import { lastHourText } from './lastHourText';

type Values = (number | null)[];

export const HOUR_MS = 3_600_000;
/** Steps of five minutes, and the one that has begun. */
export const HOUR_POINTS = 13;

/** A small plot with one or two lines. */
export interface SmallPlot {
	key: string;
	title: string;
	/** The newest values. */
	newest: string;
	/** The plot in words. */
	sentence: string;
	lines: Values[];
	max: number;
}

const highest = (values: Values): number => Math.max(0, ...values.map((it) => it ?? 0));
const last = (values: Values): number => values.findLast((it) => it !== null) ?? 0;

/** Returns the plots of an answer for the last hour; none if it knows nothing, or only a part of a cluster. */
export function smallPlots(answer: Schemas['History']): SmallPlot[] {
	if (!answer.is_kept || answer.node !== null) return [];
	const { viewers_max, bitrate_in_kbps, bitrate_out_kbps, slots_max, slots_limit } = answer.series;
	if (!viewers_max || !bitrate_in_kbps || !bitrate_out_kbps || !slots_max || !slots_limit) return [];
	if (viewers_max.filter((it) => it !== null).length < 2) return [];
	const words = lastHourText();
	const limit = last(slots_limit);
	const inUse = (n: number): string => (limit > 0 ? words.of(n, limit) : number(n));
	const rates = (value: (values: Values) => number): string =>
		words.both(kbps(value(bitrate_in_kbps)), kbps(value(bitrate_out_kbps)));
	return [
		plot('viewers', words.viewers, [viewers_max], (value) => number(value(viewers_max))),
		plot('rate', words.rate, [bitrate_in_kbps, bitrate_out_kbps], rates),
		{
			...plot('slots', words.slots, [slots_max], (value) => inUse(value(slots_max))),
			max: limit || highest(slots_max) || 1,
		},
	];
}

function plot(
	key: string,
	title: string,
	lines: Values[],
	said: (value: (values: Values) => number) => string,
): SmallPlot {
	const newest = said(last);
	const sentence = lastHourText().said(title, newest, said(highest));
	return { key, title, newest, sentence, lines, max: Math.max(1, ...lines.map(highest)) };
}

/** Returns a line as a path of SVG in a box of this size. It ends where nothing is known, and begins anew after it. */
export function linePath(values: Values, width: number, height: number, max: number): string {
	const step = width / Math.max(1, values.length - 1);
	return values
		.map((value, i) => {
			if (value === null) return '';
			const isJoined = i > 0 && values[i - 1] !== null;
			return `${isJoined ? 'L' : 'M'}${(i * step).toFixed(1)} ${(height * (1 - Math.min(1, value / max))).toFixed(1)}`;
		})
		.join('');
}
