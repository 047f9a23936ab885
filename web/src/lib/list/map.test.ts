import { describe, expect, test } from 'vitest';
import {
	MARGIN_ROWS,
	positionOf,
	REGION_PX_MAX,
	regionHeight,
	revealing,
	scrollTopOf,
	windowAt,
} from './map';

const ROW = 36;
const VIEW = 720;
const MANY = 500_000;

describe('the rows of a list', () => {
	test('a short list scrolls by its own pixels', () => {
		expect(regionHeight(100, ROW)).toBe(3600);
		expect(windowAt(0, 100, ROW, VIEW)).toEqual({ from: 0, until: 20 + MARGIN_ROWS, offset: 0 });
		const { from, until, offset } = windowAt(1800, 100, ROW, VIEW);
		expect([from, until, offset]).toEqual([50 - MARGIN_ROWS, 70 + MARGIN_ROWS, (50 - MARGIN_ROWS) * ROW]);
	});

	test('a region of 500,000 rows is not higher than browsers allow, and both ends are reached', () => {
		expect(regionHeight(MANY, ROW)).toBe(REGION_PX_MAX);
		expect(windowAt(0, MANY, ROW, VIEW).from).toBe(0);
		const end = windowAt(REGION_PX_MAX - VIEW, MANY, ROW, VIEW);
		expect(end.until).toBe(MANY);
		// The last row ends at the lower edge of the region.
		expect(end.offset + (end.until - end.from) * ROW).toBe(REGION_PX_MAX);
	});

	test('rows are where they show at any scroll position', () => {
		for (let top = 0; top <= REGION_PX_MAX - VIEW; top += 97_531) {
			const { from, until, offset } = windowAt(top, MANY, ROW, VIEW);
			const position = positionOf(top, MANY, ROW, VIEW);
			const first = Math.floor(position / ROW);
			expect(from).toBeLessThanOrEqual(first);
			expect(until * ROW).toBeGreaterThanOrEqual(position + VIEW);
			// Row `first` is cut by the upper edge of the view.
			expect(offset + (first - from) * ROW).toBeLessThanOrEqual(top + 1);
			expect(until - from).toBeLessThanOrEqual(VIEW / ROW + 2 * MARGIN_ROWS + 2);
		}
	});

	test('a position leads to the scroll position that shows it', () => {
		for (const row of [0, 1, 77, 250_000, 499_980]) {
			const top = scrollTopOf(row * ROW, MANY, ROW, VIEW);
			expect(Math.abs(positionOf(top, MANY, ROW, VIEW) - row * ROW)).toBeLessThan(1);
		}
	});

	test('a row is brought into view only if it does not show', () => {
		expect(revealing(5, 0, ROW, VIEW, 0)).toBeNull();
		expect(revealing(5, 400, ROW, VIEW, 0)).toBe(180);
		expect(revealing(20, 0, ROW, VIEW, 0)).toBe(36);
	});
});
