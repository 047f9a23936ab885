/** Finds what a history can be about. */
import { api, listed, ok } from '$lib/api';

const LISTED_MAX = 20;

/** Finds channels by a part of their name or their number. */
export async function findChannels(search: string, signal: AbortSignal) {
	const query = { search, page: 1, page_size: LISTED_MAX };
	const found = await ok(api.GET('/api/channels/channels/', { params: { query }, signal }));
	return found.results.map((it) => ({
		value: it.id,
		label: it.name,
		detail: String(it.channel_number ?? ''),
	}));
}

/** Finds streams by a part of their name. */
export async function findStreams(search: string, signal: AbortSignal) {
	const query = { search, page: 1, page_size: LISTED_MAX };
	const found = await ok(api.GET('/api/channels/streams/', { params: { query }, signal }));
	return found.results.map((it) => ({
		value: it.id,
		label: it.name,
		detail: it.channel_group_name ?? '',
	}));
}

/** Returns the streams of a channel in the order of failover. */
export async function streamsOf(id: number, signal: AbortSignal) {
	const params = { path: { id } };
	const found = listed(await ok(api.GET('/api/channels/channels/{id}/streams/', { params, signal })));
	return found.map((it) => ({ id: it.id, name: it.name }));
}

const named = (list: { id: number; label: string }[], search: string) => {
	const wanted = search.trim().toLowerCase();
	const found = list.filter((it) => it.label.toLowerCase().includes(wanted)).slice(0, LISTED_MAX);
	return found.map((it) => ({ value: it.id, label: it.label }));
};

/** Finds accounts by a part of their name. */
export async function findAccounts(search: string, signal: AbortSignal) {
	const found = await ok(api.GET('/api/m3u/accounts/', { signal }));
	const list = found.results.filter((it) => !it.locked).map((it) => ({ id: it.id, label: it.name }));
	return named(list, search);
}

/** Finds users by a part of their name. */
export async function findUsers(search: string, signal: AbortSignal) {
	const found = await ok(api.GET('/api/accounts/users/', { signal }));
	return named(
		found.results.map((it) => ({ id: it.id, label: it.username })),
		search,
	);
}
