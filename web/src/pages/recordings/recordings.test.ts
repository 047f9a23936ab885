import { describe, expect, test } from 'vitest';
import { secondsIn, startingNow } from './form';
import {
	bodyOfShowing,
	detailsBody,
	detailsOf,
	episodeText,
	fractionOf,
	isLost,
	isOver,
	nameOfFile,
	partOf,
	PARTS,
	secondsOf,
	sizesOf,
	type Recording,
} from './recordings';

const recording = {
	status: 'recording',
	start_time: '2031-05-04T20:15:00Z',
	end_time: '2031-05-04T21:15:00Z',
	padding_before: 60,
	padding_after: 300,
	started_at: null,
	ended_at: null,
} as Recording;

test('an episode is named by what is known of it', () => {
	const all = { season: 1, episode: 2, sub_title: 'The end' };
	expect(episodeText(all)).toBe('S1 E2 The end');
	expect(episodeText({ ...all, season: null, sub_title: '' })).toBe('E2');
	expect(episodeText({ season: null, episode: null, sub_title: null })).toBe('');
});

describe('a recording', () => {
	test.each([
		['2031-05-04T20:00:00Z', 0],
		['2031-05-04T20:14:00Z', 0],
		['2031-05-04T20:47:00Z', 0.5],
		['2031-05-04T23:00:00Z', 1],
	])('is at %s as far as its time, with padding', (now, expected) => {
		expect(fractionOf(recording, Date.parse(now))).toBe(expected);
	});

	test('is as long as its file, and before that as long as planned', () => {
		expect(secondsOf(recording)).toBe(66 * 60);
		const times = { started_at: '2031-05-04T20:20:00Z', ended_at: '2031-05-04T20:21:30Z' };
		expect(secondsOf({ ...recording, ...times })).toBe(90);
	});

	test('belongs to one part of the list', () => {
		const all = Object.values(PARTS).flat();
		expect(new Set(all).size).toBe(all.length);
		expect([partOf('done'), partOf('toString'), partOf(null)]).toEqual(['done', 'upcoming', 'upcoming']);
		expect(all.filter((status) => isOver({ status }))).toEqual([...PARTS.done]);
	});

	test('has a file without its folders', () => {
		expect(nameOfFile('TV_Shows/Evening/2031.ts')).toBe('2031.ts');
		expect(nameOfFile('a.ts')).toBe('a.ts');
	});
});

test('a frame has the sizes by id, and anything else has none', () => {
	const recordings = [{ recording_id: '4', bytes_written: 1880 }];
	expect([...sizesOf({ recordings })]).toEqual([[4, 1880]]);
	expect(sizesOf({ recordings: 'all' }).size).toBe(0);
});

test('a form proposes an hour from this minute on, and sends minutes as seconds', () => {
	const now = Date.parse('2031-05-04T20:15:42Z');
	expect(startingNow(now)).toEqual({
		start_time: '2031-05-04T20:15:00.000Z',
		end_time: '2031-05-04T21:15:00.000Z',
	});
	expect(secondsIn({ padding_before: null, padding_after: 2.5 })).toEqual({ padding_after: 150 });
});

test('a showing is sent with its programme, if the guide has an id for it', () => {
	const times = { start_time: '2031-05-04T20:15:00Z', end_time: '2031-05-04T21:15:00Z' };
	const showing = { channel_id: 3, program_id: 77, ...times };
	expect(bodyOfShowing(showing)).toEqual(showing);
	expect(bodyOfShowing({ ...showing, program_id: null })).toEqual({ channel_id: 3, ...times });
	expect(isLost({ forecast: 'lost' })).toBe(true);
	expect(isLost({ forecast: 'padding_cut' })).toBe(false);
});

test('the details of a programme are read whatever it says, and only changed ones are sent', () => {
	const program = { sub_title: 'The One', season: 2, episode: '7' };
	expect(detailsOf({ title: 'Show', custom_properties: { program } })).toEqual({
		title: 'Show',
		sub_title: 'The One',
		description: '',
		season: 2,
		episode: null,
	});
	expect(detailsOf({ title: 'News', custom_properties: {} }).season).toBeNull();
	expect(detailsBody({ sub_title: '', episode: 8 })).toEqual({ sub_title: '', episode: 8 });
	expect(detailsBody({ season: null })).toEqual({});
});
