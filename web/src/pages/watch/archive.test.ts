import { expect, test } from 'vitest';
import {
	barStart,
	hrefFrom,
	hrefOf,
	minutesOf,
	nextPart,
	partFrom,
	partOf,
	queryOf,
	reachOf,
} from './archive';

const DAY = 86_400_000;
const NOW = Date.parse('2031-05-04T20:30:00Z');
const at = (text: string): number => Date.parse(`2031-05-04T${text}Z`);
const programme = (start: string, end: string) => ({
	start_time: `2031-05-04T${start}Z`,
	end_time: `2031-05-04T${end}Z`,
});

test('a programme is played from the archive if that reaches back to its start', () => {
	expect(reachOf(DAY, programme('18:00:00', '19:00:00'), NOW)).toBe('past');
	expect(reachOf(DAY, programme('20:00:00', '21:00:00'), NOW)).toBe('running');
	expect(reachOf(DAY, programme('20:30:00', '21:00:00'), NOW)).toBeNull();
	expect(reachOf(0, programme('18:00:00', '19:00:00'), NOW)).toBeNull();
	const old = { start_time: '2031-05-03T20:29:59Z', end_time: '2031-05-03T21:00:00Z' };
	expect(reachOf(DAY, old, NOW)).toBeNull();
	expect(reachOf(2 * DAY, old, NOW)).toBe('past');
});

test('the address names the part of the past', () => {
	const [path, query] = hrefOf('u', programme('20:00:00', '21:00:00'), 'running').split('?');
	const part = { start: at('20:00:00'), end: at('21:00:00'), goesOn: true };
	expect([path, partOf(new URLSearchParams(query))]).toEqual(['/watch/u', part]);
	const { start, end, then } = queryOf(part);
	expect(partOf(new URLSearchParams({ start: `${start}`, end: `${end}`, then: then ?? '' }))).toEqual(part);
	for (const wrong of ['', 'start=5', 'start=5&end=5', 'start=x&end=9', 'start=-5&end=9'])
		expect(partOf(new URLSearchParams(wrong))).toBeNull();
});

test('what follows begins where a part ends, and goes on into the live channel', () => {
	const ended = { start: at('18:00:00'), end: at('18:40:30'), goesOn: true };
	expect(minutesOf(ended)).toBe(41);
	expect(nextPart(ended, NOW)).toEqual({ start: at('18:41:00'), end: at('21:30:00'), goesOn: true });
	expect(minutesOf({ start: NOW, end: NOW + 1, goesOn: false })).toBe(1);
	expect(minutesOf({ start: 0, end: NOW, goesOn: false })).toBe(480);
	const running = { start: at('20:00:00'), end: at('21:00:00'), goesOn: true };
	expect(minutesOf(running)).toBe(60);
	expect(nextPart(running, at('21:00:59'))).toBeNull();
});

test('a channel is played from a time on, and live when hardly anything is left', () => {
	expect(partFrom(at('20:10:00') + 300, NOW)).toEqual({
		start: at('20:10:00'),
		end: at('21:30:00'),
		goesOn: true,
	});
	expect(partFrom(at('20:29:50'), NOW)).toBeNull();
	const [path, query] = hrefFrom('u', at('20:10:00'), NOW).split('?');
	expect([path, partOf(new URLSearchParams(query))]).toEqual(['/watch/u', partFrom(at('20:10:00'), NOW)]);
	expect(hrefFrom('u', NOW, NOW)).toBe('/watch/u');
});

test('the time bar begins with the programme that runs, and not before the archive', () => {
	expect(barStart(DAY, null, NOW, NOW)).toBe(at('19:30:00'));
	expect(barStart(DAY, at('18:00:00'), NOW, NOW)).toBe(at('18:00:00'));
	expect(barStart(DAY, at('18:00:00'), at('17:00:00'), NOW)).toBe(at('17:00:00'));
	expect(barStart(1_800_000, at('18:00:00'), NOW, NOW)).toBe(at('20:00:00'));
});
