// How far the user is in films and episodes, and what was recorded.

import { api, isAbort, ok, type Schemas } from '$lib/api';
import { session } from '$lib/auth';
import { seasonsOf, type Episode } from './titles';

export type Watched = Schemas['WatchProgress'];

/** Entries that are read, the latest first. */
const READ_MAX = 500;
/** Recordings whose titles are read, the latest first. */
const RECORDINGS_MAX = 500;
/** Days for which a title is marked as new. */
const NEW_DAYS = 7;
const DAY_MS = 86_400_000;

/** Marks are missing while they cannot be read; the page works without them. */
async function orNothing<T>(read: Promise<T[]>): Promise<T[]> {
	try {
		return await read;
	} catch (error) {
		if (isAbort(error)) throw error;
		return [];
	}
}

/** Reads the films and episodes that the user has begun or watched, the latest first. */
export const readWatched = (signal?: AbortSignal): Promise<Watched[]> =>
	orNothing(
		ok(api.GET('/api/vod/progress/', { params: { query: { page: 1, page_size: READ_MAX } }, signal })).then(
			(it) => it.results,
		),
	);

/** Returns the part that was watched, from 0 to 1; `null` where nothing was begun, or its length is unknown. */
export function fractionOf(it: Watched | undefined): number | null {
	if (!it || it.position_secs <= 0 || !it.duration_secs) return null;
	return Math.min(1, it.position_secs / it.duration_secs);
}

export const isBegun = (it: Pick<Watched, 'position_secs'>): boolean => it.position_secs > 0;

/** Returns what to continue: films, and of each series the episode that was played last. */
export function continued(all: readonly Watched[], max: number): Watched[] {
	const seen = new Set<number>();
	const found: Watched[] = [];
	for (const it of all) {
		if (it.series_id !== null && seen.has(it.series_id)) continue;
		if (it.series_id !== null) seen.add(it.series_id);
		if (isBegun(it)) found.push(it);
	}
	return found.slice(0, max);
}

/** Returns the address of what plays on, without the base path. */
export const continueHref = (it: Watched): string =>
	it.content_type === 'movie'
		? `/library/movie-${it.id}?play=film`
		: `/library/series-${it.series_id}?play=${it.id}`;

/** Returns the episode to play next: the one that was begun, else the first behind the last watched one. */
export function nextEpisode(episodes: readonly Episode[], watched: readonly Watched[]): Episode | null {
	const inOrder = seasonsOf(episodes)
		.flatMap((it) => it.episodes)
		.filter((it) => it.providers.length > 0);
	const own = watched.filter((it) => it.content_type === 'episode');
	const last = own.find((it) => inOrder.some((of) => of.id === it.id));
	if (!last) return inOrder[0] ?? null;
	const at = inOrder.findIndex((it) => it.id === last.id);
	return (isBegun(last) || !last.watched ? inOrder[at] : inOrder[at + 1]) ?? null;
}

/** Whether a title was added lately. */
export const isNew = (created_at: string | undefined, now: number): boolean =>
	created_at !== undefined && now - Date.parse(created_at) < NEW_DAYS * DAY_MS;

/** Returns a title as it is compared: without case, marks and a year in brackets. */
export const comparable = (title: string): string =>
	title
		.replace(/\s*\(\d{4}\)\s*$/u, '')
		.toLowerCase()
		.replace(/[^\p{L}\p{N}]+/gu, ' ')
		.trim();

/** Reads the titles that the user has recorded, as they are compared. */
export async function readRecorded(signal?: AbortSignal): Promise<Set<string>> {
	if (session.user?.may_record !== true) return new Set();
	const query = {
		status: ['completed' as const, 'stopped' as const],
		ordering: '-start_time' as const,
		page: 1,
		page_size: RECORDINGS_MAX,
	};
	const found = await orNothing(
		ok(api.GET('/api/channels/recordings/', { params: { query }, signal })).then((it) => it.results),
	);
	return new Set(found.map((it) => comparable(it.title)));
}

/** Marks a film or an episode as watched, or as not watched. */
export const setWatched = (kind: 'movie' | 'episode', id: number, watched: boolean): Promise<Watched> => {
	const request = { params: { path: { id } }, body: { watched } };
	return kind === 'movie'
		? ok(api.PUT('/api/vod/movies/{id}/progress/', request))
		: ok(api.PUT('/api/vod/episodes/{id}/progress/', request));
};
