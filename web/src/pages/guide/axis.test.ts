import { describe, expect, it } from 'vitest';
import {
	axisAt,
	BLOCK_MS,
	blocksOf,
	cellsOf,
	DAY_MS,
	HALF_HOUR_MS,
	HOUR_MS,
	ticks,
	timeOf,
	viewStart,
	xOf,
} from './axis';

const NOW = new Date(2031, 4, 4, 20, 47).getTime();
const axis = axisAt(NOW);
const at = (hour: number, minute = 0) => new Date(2031, 4, 4, hour, minute).getTime();
const programme = (id: number, from: number, until: number) => ({
	id,
	display_title: `P${id}`,
	start_time: new Date(from).toISOString(),
	end_time: new Date(until).toISOString(),
});

describe('the time axis', () => {
	it('begins and ends with whole days around today', () => {
		expect(axis.from).toBe(at(0) - 7 * DAY_MS);
		expect(axis.until).toBe(at(0) + 15 * DAY_MS);
	});

	it('maps times to pixels and back', () => {
		expect(xOf(axis, axis.from + HOUR_MS)).toBe(300);
		expect(timeOf(axis, xOf(axis, NOW))).toBe(NOW);
	});

	it('has a tick at each half hour of a span, and none beyond its ends', () => {
		expect(ticks(axis, at(20, 10), at(21, 10))).toEqual([at(20, 30), at(21)]);
		expect(ticks(axis, axis.from - HOUR_MS, axis.from + 1)).toEqual([axis.from]);
		expect(ticks(axis, axis.until - 1, axis.until + HOUR_MS)).toEqual([]);
		expect(viewStart(axis, NOW)).toBe(at(20, 30));
	});

	it('needs one request for six hours, and two across their border', () => {
		const border = Math.ceil(NOW / BLOCK_MS) * BLOCK_MS;
		expect(blocksOf(border, border + BLOCK_MS)).toEqual([border / BLOCK_MS]);
		expect(blocksOf(border - 1, border + 1)).toHaveLength(2);
	});
});

describe('the cells of a row', () => {
	it('are programmes and the gaps between them', () => {
		const cells = cellsOf([programme(2, at(21), at(22)), programme(1, at(19), at(20))], at(19, 30), at(23));
		expect(cells.map((it) => [it.programme?.id ?? null, it.from, it.until])).toEqual([
			[1, at(19), at(20)],
			[null, at(20), at(21)],
			[2, at(21), at(22)],
			[null, at(22), at(23)],
		]);
	});

	it('do not overlap, and show a programme of two requests once', () => {
		const long = programme(1, at(19), at(22));
		const cells = cellsOf([long, programme(2, at(20), at(21)), long], at(19), at(21));
		expect(cells.map((it) => [it.programme?.id, it.until])).toEqual([
			[1, at(20)],
			[2, at(21)],
		]);
	});

	it('are none without programmes, and none for a programme that ends before it starts', () => {
		expect(cellsOf([], at(19), at(21))).toEqual([]);
		expect(cellsOf([programme(1, at(20), at(20) - HALF_HOUR_MS)], at(19), at(21))).toEqual([]);
	});
});
