import { expect, test } from 'vitest';
import { exchanged, gentler, inserted, planMoves, reordered } from './moving';
import type { Numbered, NumberChange } from './numbering';

/** Channels with these numbers; their ids are their places, from 1. */
const channels = (...numbers: (number | null)[]): Numbered[] =>
	numbers.map((it, n) => ({
		id: n + 1,
		name: `C${n + 1}`,
		number: it === null ? null : it * 1000,
		isAutomatic: false,
	}));
const written = (changes: NumberChange[] | null) =>
	changes?.map(({ channel, to }) => `${channel.id}: ${(channel.number ?? 0) / 1000} → ${to / 1000}`) ?? null;

test('a block goes behind a channel in its order', () => {
	const list = channels(1, 2, 3, 4, 5);
	const ids = (moved: number[], after: number | null) =>
		reordered(list, new Set(moved), after).map((it) => it.id);
	expect(ids([4], 1)).toEqual([1, 4, 2, 3, 5]);
	expect(ids([2, 5], null)).toEqual([2, 5, 1, 3, 4]);
	expect(ids([1, 2], 5)).toEqual([3, 4, 5, 1, 2]);
});

test.each<[string, (number | null)[], number[], number | null, string[] | null]>([
	['up', [1, 2, 3, 4], [4], 1, ['4: 4 → 2', '2: 2 → 3', '3: 3 → 4']],
	['down', [1, 2, 3, 4], [1], 3, ['2: 2 → 1', '3: 3 → 2', '1: 1 → 3']],
	['over gaps and fractions', [10, 20.5, 30], [3], null, ['3: 30 → 10', '1: 10 → 20.5', '2: 20.5 → 30']],
	['to its own place', [1, 2, 3], [2], 1, []],
	['over a channel without a number', [1, 2, null], [3], 1, null],
])('channels exchange their numbers: %s', (_, numbers, moved, after, expected) => {
	expect(written(exchanged(channels(...numbers), new Set(moved), after))).toEqual(expected);
});

test.each<[string, (number | null)[], number[], number | null, string[] | null]>([
	['a free number', [10, 20, 30], [3], 1, ['3: 30 → 11']],
	['a taken one', [1, 2, 3, 7], [4], 1, ['4: 7 → 2', '2: 2 → 3', '3: 3 → 4']],
	['the first place', [1, 2, 5], [3], null, ['3: 5 → 1', '1: 1 → 2', '2: 2 → 3']],
	['a channel without a number', [1, null], [2], 1, ['2: 0 → 2']],
	['behind a fraction', [1.5, 9], [2], 1, ['2: 9 → 2']],
	['a block', [1, 5, 6, 7], [3, 4], 1, ['3: 6 → 2', '4: 7 → 3']],
	['behind a channel without a number', [1, null], [1], 2, null],
])('moved channels get the next numbers: %s', (_, numbers, moved, after, expected) => {
	const list = channels(...numbers);
	const block = list.filter((it) => moved.includes(it.id));
	const above = list.find((it) => it.id === after) ?? null;
	expect(written(inserted(block, list, above))).toEqual(expected);
});

test('the way with fewer changes comes first', () => {
	const plan = (numbers: (number | null)[], moved: number[], after: number | null) => {
		const list = channels(...numbers);
		return gentler(planMoves(list, list, new Set(moved), after));
	};
	expect(plan([10, 20, 30], [3], 1)).toBe('insert');
	expect(plan([1, 2, 3, 4, 5, 6], [3], 4)).toBe('exchange');
	expect(plan([1, 2, null], [3], 1)).toBe('insert');
	expect(plan([1, null, null], [2], 3)).toBeNull();
});

test('a list of one group exchanges its own numbers, and makes room among all channels', () => {
	const all = channels(1, 2, 3, 4);
	const list = [all[0]!, all[3]!];
	const moves = planMoves(list, all, new Set([4]), null);
	expect(written(moves.exchange)).toEqual(['4: 4 → 1', '1: 1 → 4']);
	expect(written(moves.insert)).toEqual(['4: 4 → 1', '1: 1 → 2', '2: 2 → 3', '3: 3 → 4']);
});
