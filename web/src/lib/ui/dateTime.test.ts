import { expect, test } from 'vitest';
import { fromLocal, toLocal } from './dateTime';

test('a field shows the time of the browser and sends the moment', () => {
	const moment = new Date(2031, 4, 4, 20, 15).toISOString();
	expect(toLocal(moment)).toBe('2031-05-04T20:15');
	expect(fromLocal('2031-05-04T20:15')).toBe(moment);
});

test('what is empty or no time is none', () => {
	expect([toLocal(null), toLocal('soon')]).toEqual(['', '']);
	expect([fromLocal(''), fromLocal('20:15')]).toEqual([null, null]);
});
