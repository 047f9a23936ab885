// Categories of films and series.

import { api, listed, ok, type Schemas } from '$lib/api';

export type Category = Schemas['VODCategory'];

/** Reads all categories, or those that an account lists. */
export async function readCategories(
	query: { m3u_account?: number },
	signal?: AbortSignal,
): Promise<Category[]> {
	const answer = await ok(api.GET('/api/vod/categories/', { params: { query }, signal }));
	return listed(answer);
}
