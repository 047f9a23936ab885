import { expect, it } from 'vitest';
import { mergedStreams, numberAfter } from './actions';

it('the numbers of the next batch follow those of the last one', () => {
	expect(numberAfter([], 100)).toBe(100);
	expect(numberAfter([{ channel_numbers: [100, 101] }, { channel_numbers: [102, 105] }], 100)).toBe(106);
	expect(numberAfter([{ channel_numbers: [] }], 100)).toBe(100);
});

it('a merge adds each stream once, in the order of the channels', () => {
	expect(
		mergedStreams(
			[1, 2],
			[
				[3, 2],
				[4, 3],
			],
		),
	).toEqual([3, 4]);
	expect(mergedStreams([1], [])).toEqual([]);
});
