import { describe, expect, test } from 'vitest';
import { imageUrl } from '$lib/api';
import { playlistOf } from './playable';
import {
	clockOf,
	filterOf,
	isNarrowed,
	keyOf,
	ofKey,
	queryOf,
	seasonsOf,
	yearsUntil,
	type Episode,
} from './titles';

const filter = (query: string) => filterOf(new URLSearchParams(query));

describe('addresses', () => {
	test('the key of a title names its kind and id, and anything else is none', () => {
		expect(ofKey(keyOf('series', 12))).toEqual({ kind: 'series', id: 12 });
		for (const wrong of [
			undefined,
			'',
			'12',
			'movie',
			'movie-',
			'channel-1',
			'movie-1x',
			`movie-${'9'.repeat(11)}`,
		])
			expect(ofKey(wrong)).toBeNull();
	});

	test('filters that no page writes are ignored', () => {
		expect(filter('kind=channel&order=size&year=abc&category=x')).toEqual(filter(''));
		expect(isNarrowed(filter('kind=movie&order=-year'))).toBe(false);
		expect(isNarrowed(filter('q=heat'))).toBe(true);
	});

	test.each([
		['', { ordering: 'name' }],
		['q=heat&category=4&order=-year', { search: 'heat', category: '4', ordering: '-year' }],
		['year=1995', { year_gte: 1995, year_lte: 1995, ordering: 'name' }],
		['year=1990-1999', { year_gte: 1990, year_lte: 1999, ordering: 'name' }],
		['year=-1949', { year_lte: 1949, ordering: 'name' }],
		['year=2020-', { year_gte: 2020, ordering: 'name' }],
	])('%j is asked for as it is', (query, expected) => {
		expect(queryOf(filter(query))).toEqual(expected);
	});

	test('each year to choose is a filter', () => {
		const years = yearsUntil(2026);
		expect(years[0]).toBe('2026');
		expect(years).toContain('1990-1999');
		expect(years.at(-1)).toBe('-1949');
		for (const year of years) expect(filter(`year=${year}`).year).toBe(year);
	});

	test('pictures are loaded from the gateway only', () => {
		const own = 'http://other.host:1/prefix/api/vod/movies/7/image/7f34a1b2';
		expect(imageUrl(own)).toBe('/api/vod/movies/7/image/7f34a1b2');
		expect(imageUrl('http://provider.example/poster.jpg')).toBeUndefined();
	});
});

describe('seasonsOf', () => {
	const episode = (season_number: number, episode_number: number) =>
		({ id: season_number * 100 + episode_number, season_number, episode_number }) as Episode;

	test('seasons and their episodes are in order, with the specials at the end', () => {
		const found = seasonsOf([episode(2, 1), episode(0, 1), episode(1, 2), episode(1, 1)]);
		expect(found.map((it) => [it.number, it.episodes.map((of) => of.episode_number)])).toEqual([
			[1, [1, 2]],
			[2, [1]],
			[0, [1]],
		]);
	});
});

test('a playlist has one entry, whatever the name contains', () => {
	const written = playlistOf('Heat\r\nhttp://evil.example/', 'http://g:1/movie/a/b/7.mkv');
	expect(written.split('\n')).toEqual([
		'#EXTM3U',
		'#EXTINF:-1,Heat  http://evil.example/',
		'http://g:1/movie/a/b/7.mkv',
		'',
	]);
});

test.each([
	[0, '0:00'],
	[65.9, '1:05'],
	[3723, '1:02:03'],
])('%d seconds are written as %s', (seconds, written) => expect(clockOf(seconds)).toBe(written));
