// Guide channels, as the fields that choose one need them.

import { api, listed, ok, type Schemas } from '$lib/api';

type GuideChannel = Schemas['EPGData'];

/** Guide channels that a search lists. */
const LISTED = 50;

export const readGuideChannel = (id: number, signal?: AbortSignal): Promise<GuideChannel> =>
	ok(api.GET('/api/epg/epgdata/{id}/', { params: { path: { id } }, signal }));

/** Returns the names of the guides by their ids. */
export async function readGuideNames(signal: AbortSignal): Promise<Map<number, string>> {
	const answer = await ok(api.GET('/api/epg/sources/', { signal }));
	const all = listed(answer);
	return new Map(all.map((it) => [it.id, it.name]));
}

/** Returns the guide channels with these words in their name or id, as options of a field. */
export async function findGuideChannels(search: string, signal: AbortSignal) {
	const query = { search, page: 1, page_size: LISTED, ordering: 'name' as const };
	const answer = await ok(api.GET('/api/epg/epgdata/', { params: { query }, signal }));
	const all = listed(answer);
	return all.map((it) => ({ value: it.id, label: it.name, detail: it.tvg_id }));
}
