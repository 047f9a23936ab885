import { expect, test } from 'vitest';
import type { Episode } from './titles';
import {
	comparable,
	continued,
	continueHref,
	fractionOf,
	isNew,
	nextEpisode,
	type Watched,
} from './watching';

const watched = (id: number, more: Partial<Watched> = {}): Watched => ({
	id,
	uuid: `u${id}`,
	content_type: 'movie',
	name: `Film ${id}`,
	position_secs: 600,
	duration_secs: 6000,
	watched: false,
	play_count: 0,
	season_number: null,
	episode_number: null,
	series_id: null,
	series_name: null,
	updated_at: null,
	...more,
});
const ofSeries = (id: number, more: Partial<Watched> = {}) =>
	watched(id, { content_type: 'episode', series_id: 7, ...more });
const episode = (id: number, season_number: number, episode_number: number, providers: unknown[] = [{}]) =>
	({ id, season_number, episode_number, providers }) as Episode;

test('the watched part is known for what was begun and has a length', () => {
	expect(fractionOf(watched(1))).toBe(0.1);
	expect(fractionOf(watched(1, { position_secs: 9000 }))).toBe(1);
	for (const none of [undefined, watched(1, { position_secs: 0 }), watched(1, { duration_secs: null })])
		expect(fractionOf(none)).toBeNull();
});

test('films go on, and of each series the episode that was played last', () => {
	const all = [
		ofSeries(3),
		ofSeries(2),
		watched(1),
		watched(4, { position_secs: 0, watched: true }),
		ofSeries(9, { series_id: 8, position_secs: 0, watched: true }),
		ofSeries(8, { series_id: 8 }),
	];
	expect(continued(all, 9).map(continueHref)).toEqual([
		'/library/series-7?play=3',
		'/library/movie-1?play=film',
	]);
	expect(continued(all, 1)).toHaveLength(1);
});

test.each<[string, Watched[], number | null]>([
	['nothing was watched', [], 1],
	['an episode was begun', [ofSeries(2)], 2],
	['an episode was watched', [ofSeries(1, { position_secs: 0, watched: true })], 2],
	['the last of a season was watched', [ofSeries(2, { position_secs: 0, watched: true })], 3],
	['all were watched', [ofSeries(5, { position_secs: 0, watched: true })], null],
	['another series was watched', [ofSeries(99)], 1],
])('the next episode if %s', (_, progress, expected) => {
	const episodes = [
		episode(5, 0, 1),
		episode(3, 2, 1),
		episode(2, 1, 2),
		episode(1, 1, 1),
		episode(4, 2, 2, []),
	];
	expect(nextEpisode(episodes, progress)?.id ?? null).toBe(expected);
});

test('titles are compared without case, marks and year', () => {
	expect(comparable('The Heat: Part II (1995)')).toBe(comparable('the heat – part ii'));
	expect(comparable('2001')).toBe('2001');
});

test('a title is new for a week', () => {
	const now = Date.parse('2031-05-08T00:00:00Z');
	expect(isNew('2031-05-02T00:00:00Z', now)).toBe(true);
	expect(isNew('2031-05-01T00:00:00Z', now)).toBe(false);
	expect(isNew(undefined, now)).toBe(false);
});
