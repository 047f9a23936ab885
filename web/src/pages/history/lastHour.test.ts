import { expect, test } from 'vitest';
import { linePath, smallPlots } from './lastHour';

type Answer = Parameters<typeof smallPlots>[0];

const answer = (changed: Partial<Answer> = {}, limit = 5): Answer =>
	({
		scope: 'gateway',
		is_kept: true,
		node: null,
		series: {
			viewers_max: [null, 3, 2],
			bitrate_in_kbps: [null, 4000, 2000],
			bitrate_out_kbps: [null, 9000, 8000],
			slots_max: [null, 4, 1],
			slots_limit: [null, limit, limit],
		},
		...changed,
	}) as Answer;

test('the plots tell their newest and highest values in words', () => {
	expect(smallPlots(answer()).map((it) => it.sentence)).toEqual([
		'Viewers: 2, at most 3',
		'Received and sent: 2 Mbit/s / 8 Mbit/s, at most 4 Mbit/s / 9 Mbit/s',
		'Connections in use: 1 of 5, at most 4 of 5',
	]);
	const [, , slots] = smallPlots(answer({}, 0));
	expect([slots?.newest, slots?.max], 'without a limit').toEqual(['1', 4]);
});

test('a gateway that keeps no history, or is one node of several, has no plots', () => {
	expect(smallPlots(answer({ is_kept: false }))).toEqual([]);
	expect(smallPlots(answer({ node: 'attic' }))).toEqual([]);
	const series = { ...answer().series, viewers_max: [null, null, 1] };
	expect(smallPlots(answer({ series })), 'one value is no line').toEqual([]);
});

test('a line ends where nothing is known', () => {
	expect(linePath([0, 10, null, 5, 20], 100, 10, 10)).toBe('M0.0 10.0L25.0 0.0M75.0 5.0L100.0 0.0');
});
