import { expect, test } from 'vitest';
import { hoursBody, hoursOf, likeDay, newHours, nextRange } from './hours';

const stored = {
	time_zone: 'Europe/Berlin',
	mon: ['07:00-19:30'],
	tue: [],
	wed: [],
	thu: [],
	fri: [],
	sat: ['09:00-12:00', '14:00-24:00'],
	sun: [],
};

test('a table is shown and sent back as it is', () => {
	const table = hoursOf(stored);
	expect(table?.days.sat).toEqual([
		{ from: '09:00', until: '12:00' },
		{ from: '14:00', until: '00:00' },
	]);
	expect(hoursBody(table)).toEqual(stored);
	expect(hoursBody(hoursOf({ time_zone: 'UTC' }))).toMatchObject({ time_zone: 'UTC', sun: [] });
	expect([hoursOf(null), hoursBody(null)]).toEqual([null, null]);
});

test('what a later version has does not stop the form', () => {
	expect(hoursOf({ time_zone: 7, mon: 'always', tue: [7, '08:00-09:00'] })).toMatchObject({
		time_zone: '',
		days: { mon: [], tue: [{ from: '08:00', until: '09:00' }] },
	});
});

test('the hours of a day are copied to all days', () => {
	const table = likeDay(hoursOf(stored) ?? newHours('UTC'), 'sat');
	expect(hoursBody(table)).toMatchObject({ mon: stored.sat, sun: stored.sat, time_zone: 'Europe/Berlin' });
	expect(table.days.mon[0]).not.toBe(table.days.sat[0]);
});

test.each([
	[[], { from: '07:00', until: '19:30' }],
	[[{ from: '07:00', until: '12:00' }], { from: '13:00', until: '00:00' }],
	[[{ from: '07:00', until: '23:00' }], null],
	[[{ from: '07:00', until: '00:00' }], null],
	[[{ from: '07:00', until: '' }], { from: '01:00', until: '00:00' }],
	[Array.from({ length: 8 }, () => ({ from: '07:00', until: '08:00' })), null],
])('after %j comes %j', (ranges, expected) => expect(nextRange(ranges)).toEqual(expected));
