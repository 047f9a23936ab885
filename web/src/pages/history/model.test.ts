import { expect, test } from 'vitest';
import {
	extremes,
	isEmpty,
	isRange,
	isScope,
	lineCharts,
	queryOf,
	sentence,
	shareOf,
	strips,
	tableOf,
	timesOf,
	type Answer,
} from './model';

const NOTHING: Answer['series'] = {
	bitrate_in_kbps: null,
	bitrate_out_kbps: null,
	peak_in_kbps: null,
	peak_out_kbps: null,
	viewers: null,
	viewers_max: null,
	slots: null,
	slots_max: null,
	slots_limit: null,
	playing_seconds: null,
	failing_seconds: null,
	failovers: null,
	losses: null,
	recording_bytes: null,
};
const answer = (series: Partial<Answer['series']>, scope: Answer['scope'] = 'gateway'): Answer => ({
	scope,
	id: null,
	name: null,
	node: null,
	is_kept: true,
	start: '2031-05-04T07:00:00Z',
	step_seconds: 300,
	points: 3,
	series: { ...NOTHING, ...series },
});

test('a request names its span and as many points as fit', () => {
	const now = Date.parse('2031-05-04T07:00:00Z');
	expect(queryOf('channel', 7, '6h', now)).toEqual({
		scope: 'channel',
		id: 7,
		from: '2031-05-04T01:00:00.000Z',
		until: '2031-05-04T07:00:00.000Z',
		points: 300,
	});
	expect([isRange('7d'), isRange('toString'), isRange(null)]).toEqual([true, false, false]);
	expect([isScope('user'), isScope('planet')]).toEqual([true, false]);
});

test('an answer gets the charts of its series', () => {
	const gateway = answer({
		bitrate_in_kbps: [1, 2, null],
		bitrate_out_kbps: [1, 2, null],
		viewers: [0, 1, null],
		viewers_max: [0, 2, null],
		slots_max: [1, 1, null],
		slots_limit: [0, 4, null],
		failovers: [0, 0, null],
		losses: [0, 0, null],
		recording_bytes: [0, 0, null],
	});
	expect(lineCharts(gateway).map((it) => it.key)).toEqual(['rate', 'viewers', 'slots']);
	expect(lineCharts(gateway)[2]?.lines[1]?.values, 'a limit of 0 is none').toEqual([null, 4, null]);
	expect(strips(gateway).map((it) => it.key)).toEqual(['failovers']);
	const user = answer({ bitrate_out_kbps: [5], viewers: [1], viewers_max: [1] }, 'user');
	expect(lineCharts(user).map((it) => it.lines.map((line) => line.key))).toEqual([
		['out'],
		['viewers', 'viewersMax'],
	]);
});

test('a chart is told in one sentence with its newest and highest values', () => {
	const [chart] = lineCharts(
		answer({ bitrate_in_kbps: [4000, 2000, null], bitrate_out_kbps: [null, null, null] }),
	);
	if (!chart) throw new Error('no chart');
	expect(sentence(chart)).toBe('Rate: Received 2 Mbit/s, at most 4 Mbit/s; Sent unknown.');
	expect(chart.lines.map((it) => extremes(it, chart.format))).toEqual([
		{ newest: '2 Mbit/s', highest: '4 Mbit/s' },
		null,
	]);
});

test('a strip tells failing, idle and unknown steps apart', () => {
	const [health, failovers] = strips(
		answer(
			{
				playing_seconds: [300, 200, 0, 0, null],
				failing_seconds: [0, 100, 300, 0, null],
				failovers: [0, 2, 0, 0, null],
				losses: [0, 3, 1, 0, null],
			},
			'channel',
		),
	);
	expect(health?.states).toEqual(['playing', 'partly', 'failing', 'idle', 'unknown']);
	expect(health?.summary).toBe('played 56 % of the time in use');
	expect(failovers?.states).toEqual(['idle', 'partly', 'failing', 'idle', 'unknown']);
	expect(failovers?.summary).toBe('2 failovers, 4 failures of streams');
	expect(shareOf(0, 0)).toBeNull();
});

test('a table has the newest steps first and none without values', () => {
	const times = timesOf(answer({}));
	expect(times.map((it) => it - (times[0] ?? 0))).toEqual([0, 300, 600]);
	const rows = tableOf(times, [(i) => (i === 1 ? null : `${i}`)]);
	expect(rows.map((it) => it.cells)).toEqual([['2'], ['0']]);
});

test('an answer without any value is empty', () => {
	expect(isEmpty(answer({ viewers: [null, null] }))).toBe(true);
	expect(isEmpty(answer({ viewers: [null, 0] }))).toBe(false);
});
