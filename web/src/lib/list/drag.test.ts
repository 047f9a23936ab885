import { expect, test } from 'vitest';
import { gapAt, RowDrag, scrollStep } from './drag.svelte';

test('a pointer is between the rows that are nearest', () => {
	const rows = [0, 17, 19, 36, 53, 55, 400, -20].map((it) => gapAt(it, 36, 5));
	expect(rows).toEqual([0, 0, 1, 1, 1, 2, 5, 0]);
});

test('the list scrolls near its edges only, and not faster than rows can be read', () => {
	expect([0, 47, 100, 352, 353, 400, 2000].map((it) => scrollStep(it, 400))).toEqual([
		-24, -0, 0, 0, 1, 24, 24,
	]);
});

test('keys move a row from place to place, over its own one', () => {
	const drag = new RowDrag();
	drag.step(2, 1, 5);
	expect([drag.from, drag.to, drag.isMoved]).toEqual([2, 4, true]);
	drag.step(2, -1, 5);
	expect([drag.to, drag.isMoved]).toEqual([2, false]);
	drag.step(2, -1, 5);
	expect([drag.to, drag.isMoved]).toEqual([1, true]);
	drag.step(2, -10, 5);
	expect(drag.to).toBe(0);
	drag.step(2, Infinity, 5);
	expect(drag.to).toBe(5);
	drag.cancel();
	expect([drag.from, drag.isMoved]).toEqual([null, false]);
});
