// Films and series: their kinds, addresses, filters and episodes.

import { api, ok, type Paged, type Schemas } from '$lib/api';

export type Movie = Schemas['Movie'];
export type Series = Schemas['Series'];
export type Episode = Schemas['Episode'];
export type Relation = Schemas['TitleRelation'];
export type TitleKind = 'movie' | 'series';

/** A title in the grid. */
export type Title = Pick<
	Movie,
	'id' | 'uuid' | 'name' | 'year' | 'rating' | 'logo' | 'is_adult' | 'hidden' | 'completed_by'
> &
	Partial<Pick<Movie, 'created_at'>> & { kind: TitleKind };

/** What the grid shows: all titles, those of one kind, or the favourites of the user. */
export type Shown = 'all' | TitleKind | 'favourites';
export const SHOWN: readonly Shown[] = ['all', 'movie', 'series', 'favourites'];

/** Orders of the grid; the first one is the default. */
export const ORDERS = ['name', '-created_at', '-year', '-rating'] as const;
export type Order = (typeof ORDERS)[number];

/** Returns the second segment of the address of a title. */
export const keyOf = (kind: TitleKind, id: number): string => `${kind}-${id}`;

/** Reads the second segment of an address; `null` for anything else. */
export function ofKey(key: string | undefined): { kind: TitleKind; id: number } | null {
	const found = /^(movie|series)-(\d{1,10})$/.exec(key ?? '');
	return found ? { kind: found[1] as TitleKind, id: Number(found[2]) } : null;
}

/** Filters as the address of the page holds them. */
export interface Filter {
	shown: Shown;
	search: string;
	/** Id of a category. */
	category: string;
	/** A year, or first and last year: `1990-1999`; either may be missing. */
	year: string;
	order: Order;
}

export function filterOf(query: URLSearchParams): Filter {
	const kind = query.get('kind') as Shown | null;
	const order = query.get('order') as Order | null;
	return {
		shown: kind && SHOWN.includes(kind) ? kind : 'all',
		search: query.get('q') ?? '',
		category: /^\d+$/.test(query.get('category') ?? '') ? (query.get('category') ?? '') : '',
		year: /^\d{4}$|^\d{0,4}-\d{0,4}$/.test(query.get('year') ?? '') ? (query.get('year') ?? '') : '',
		order: order && ORDERS.includes(order) ? order : ORDERS[0],
	};
}

/** Returns whether something besides kind and order narrows the list. */
export const isNarrowed = (filter: Filter): boolean =>
	filter.search !== '' || filter.category !== '' || filter.year !== '';

/** Returns the filters of a request. */
export function queryOf(filter: Filter) {
	const [from, until] = filter.year.includes('-') ? filter.year.split('-') : [filter.year, filter.year];
	return {
		...(filter.search ? { search: filter.search } : {}),
		...(filter.category ? { category: filter.category } : {}),
		...(from ? { year_gte: Number(from) } : {}),
		...(until ? { year_lte: Number(until) } : {}),
		ordering: filter.order,
	};
}

/** Years that are offered one by one; those before them are offered as decades. */
const SINGLE_YEARS = 8;
/** The first decade that is offered by itself. */
const FIRST_DECADE = 1950;

/** Returns the years to choose from, as values of the address: the latest ones, then decades, then all before. */
export function yearsUntil(now: number): string[] {
	const single = Array.from({ length: SINGLE_YEARS }, (_, n) => String(now - n));
	const decades: string[] = [];
	for (let year = Math.floor(now / 10) * 10; year >= FIRST_DECADE; year -= 10)
		decades.push(`${year}-${year + 9}`);
	return [...single, ...decades, `-${FIRST_DECADE - 1}`];
}

/** Reads a page of the grid. */
export async function readTitles(
	filter: Filter,
	page: number,
	page_size: number,
	signal?: AbortSignal,
): Promise<Paged<Title>> {
	if (filter.shown === 'favourites') {
		const query = { page, page_size };
		return mixed(await ok(api.GET('/api/vod/favorites/', { params: { query }, signal })));
	}
	const query = { ...queryOf(filter), page, page_size };
	const request = { params: { query }, signal };
	switch (filter.shown) {
		case 'all':
			return mixed(await ok(api.GET('/api/vod/all/', request)));
		case 'movie':
			return ofKind('movie', await ok(api.GET('/api/vod/movies/', request)));
		case 'series':
			return ofKind('series', await ok(api.GET('/api/vod/series/', request)));
	}
}

const mixed = (answer: Paged<Schemas['MovieOrSeries']>): Paged<Title> => ({
	...answer,
	results: answer.results.map((it) => ({ ...it, kind: it.content_type })),
});

const ofKind = (kind: TitleKind, answer: Paged<Movie> | Paged<Series>): Paged<Title> => ({
	...answer,
	results: answer.results.map((it) => ({ ...it, kind })),
});

/** A season with its episodes. */
export interface Season {
	number: number;
	episodes: Episode[];
}

/** Groups episodes by season: specials, which are season 0, come last. */
export function seasonsOf(episodes: readonly Episode[]): Season[] {
	const seasons = new Map<number, Episode[]>();
	for (const episode of episodes) {
		const all = seasons.get(episode.season_number);
		if (all) all.push(episode);
		else seasons.set(episode.season_number, [episode]);
	}
	const place = (season: number): number => (season === 0 ? Infinity : season);
	return [...seasons]
		.map(([number, all]) => ({
			number,
			episodes: all.toSorted((a, b) => a.episode_number - b.episode_number),
		}))
		.sort((a, b) => place(a.number) - place(b.number));
}

/** Writes a time of a film: `1:02:03`, `2:03`. */
export function clockOf(seconds: number): string {
	const s = Math.max(0, Math.floor(seconds));
	const two = (n: number): string => String(n).padStart(2, '0');
	const hours = Math.floor(s / 3600);
	const minutes = Math.floor(s / 60) % 60;
	return hours > 0 ? `${hours}:${two(minutes)}:${two(s % 60)}` : `${minutes}:${two(s % 60)}`;
}
