import { expect, it } from 'vitest';
import { isSameOrder, moved } from './order';

it('an item moves to a position', () => {
	expect(moved(['a', 'b', 'c'], 0, 2)).toEqual(['b', 'c', 'a']);
	expect(moved(['a', 'b', 'c'], 2, 0)).toEqual(['c', 'a', 'b']);
	expect(moved(['a', 'b', 'c'], 1, 1)).toEqual(['a', 'b', 'c']);
});

it('a position beyond the ends is the end', () => {
	expect(moved(['a', 'b', 'c'], 1, -5)).toEqual(['b', 'a', 'c']);
	expect(moved(['a', 'b', 'c'], 1, 99)).toEqual(['a', 'c', 'b']);
	expect(moved(['a'], 4, 0)).toEqual(['a']);
});

it('orders are compared', () => {
	expect(isSameOrder([1, 2], [1, 2])).toBe(true);
	expect(isSameOrder([1, 2], [2, 1])).toBe(false);
	expect(isSameOrder([1], [1, 2])).toBe(false);
});
