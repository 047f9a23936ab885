import { expect, test } from 'vitest';
import { added, pathOf, rangeOf, roundedUp, SPAN_MS, type Sample } from './rate';

const at = (seconds: number, value: number | null): Sample => ({ at: seconds * 1000, value });

test('a chart keeps the measurements of five minutes, each once', () => {
	let samples: Sample[] = [];
	for (let second = 0; second <= 400; second += 1) samples = added(samples, at(second, second));
	expect(samples).toHaveLength(SPAN_MS / 1000);
	expect(samples[0]).toEqual(at(101, 101));
	expect(added(samples, at(400, 7))).toBe(samples);
});

test('the line ends at a pause and begins anew after it', () => {
	const samples = [at(290, 50), at(291, 100), at(292, null), at(293, 0), at(299, 100), at(300, 100)];
	expect(pathOf(samples, 300_000, 300, 100, 100)).toBe(
		'M290.0 50.0L291.0 0.0M293.0 100.0M299.0 0.0L300.0 0.0',
	);
	expect(pathOf([], 0, 300, 100, 1)).toBe('');
});

test('the scale ends at a round number', () => {
	expect([0, 1, 3, 20, 21, 499, 5001].map(roundedUp)).toEqual([1, 1, 5, 20, 50, 500, 10_000]);
});

test('a range has no value without measurements', () => {
	expect(rangeOf([at(1, null)])).toBeNull();
	expect(rangeOf([at(1, 5), at(2, null), at(3, 2)])).toEqual({ lowest: 2, highest: 5 });
});
