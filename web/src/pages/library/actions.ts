// What admins do with a title.

import { api, ok } from '$lib/api';
import type { TitleKind } from './titles';

/** Changes a title, with an undo. */
export function change(kind: TitleKind, id: number, values: { hidden?: boolean; is_adult?: boolean }) {
	const body = { ids: [id], values };
	return kind === 'movie'
		? ok(api.POST('/api/vod/movies/bulk-edit/', { body }))
		: ok(api.POST('/api/vod/series/bulk-edit/', { body }));
}

/** Moves the versions of another title to this one. */
export function merge(kind: TitleKind, id: number, other: number) {
	const request = { params: { path: { id } }, body: { ids: [other] } };
	return kind === 'movie'
		? ok(api.POST('/api/vod/movies/{id}/merge/', request))
		: ok(api.POST('/api/vod/series/{id}/merge/', request));
}

/** Makes a version a title of its own. */
export function split(kind: TitleKind, id: number, relation: number) {
	const request = { params: { path: { id } }, body: { relation_ids: [relation] } };
	return kind === 'movie'
		? ok(api.POST('/api/vod/movies/{id}/split/', request))
		: ok(api.POST('/api/vod/series/{id}/split/', request));
}
