// The favourite films and series of the user.

import { api, ok } from '$lib/api';
import type { TitleKind } from './titles';

/** Favourites of one request. */
const PAGE = 100;

/** Returns whether a title is a favourite. Reads the latest ones first. */
export async function isFavourite(kind: TitleKind, id: number, signal: AbortSignal): Promise<boolean> {
	for (let page = 1; ; page += 1) {
		const query = { page, page_size: PAGE };
		const { count, results } = await ok(api.GET('/api/vod/favorites/', { params: { query }, signal }));
		if (results.some((it) => it.content_type === kind && it.id === id)) return true;
		if (page * PAGE >= count) return false;
	}
}

export async function setFavourite(kind: TitleKind, id: number, isOn: boolean): Promise<void> {
	const params = { path: { id } };
	if (kind === 'movie') {
		if (isOn) await ok(api.PUT('/api/vod/movies/{id}/favorite/', { params }));
		else await ok(api.DELETE('/api/vod/movies/{id}/favorite/', { params }));
	} else if (isOn) await ok(api.PUT('/api/vod/series/{id}/favorite/', { params }));
	else await ok(api.DELETE('/api/vod/series/{id}/favorite/', { params }));
}
