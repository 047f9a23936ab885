// Values of the forms of recordings.

import { api, ok } from '$lib/api';

const MINUTE_MS = 60_000;
/** Length of a recording that a form proposes, in minutes. */
const LENGTH = 60;

/** Returns the times that a new form proposes: from the present minute on. */
export function startingNow(now: number): { start_time: string | null; end_time: string | null } {
	const start = Math.floor(now / MINUTE_MS) * MINUTE_MS;
	const iso = (ms: number): string => new Date(ms).toISOString();
	return { start_time: iso(start), end_time: iso(start + LENGTH * MINUTE_MS) };
}

interface Padding {
	padding_before?: number | null;
	padding_after?: number | null;
}

/** Returns the minutes of a form as the API takes them, in seconds. Those that are not filled in are left out. */
export function secondsIn(minutes: Padding): { padding_before?: number; padding_after?: number } {
	const entries = Object.entries(minutes).filter(([, it]) => typeof it === 'number');
	return Object.fromEntries(entries.map(([name, it]) => [name, Math.round(Number(it) * 60)]));
}

/** Channels that a search lists. */
const LISTED_MAX = 20;

/** Finds channels for a field. */
export async function findChannels(search: string, signal: AbortSignal) {
	const query = { search, page: 1, page_size: LISTED_MAX };
	const found = await ok(api.GET('/api/channels/channels/', { params: { query }, signal }));
	return found.results.map((it) => ({
		value: it.id,
		label: it.name,
		detail: String(it.channel_number ?? ''),
	}));
}

/** Finds groups of channels for a field. */
export async function findGroups(search: string, signal: AbortSignal) {
	const { results } = await ok(api.GET('/api/channels/groups/', { signal }));
	const wanted = search.trim().toLowerCase();
	const found = results.filter((it) => it.name.toLowerCase().includes(wanted)).slice(0, LISTED_MAX);
	return found.map((it) => ({ value: it.id, label: it.name }));
}

/** Returns the names of groups of channels by their ids. */
export async function namesOfGroups(
	ids: readonly number[],
	signal: AbortSignal,
): Promise<Map<number, string>> {
	if (ids.length === 0) return new Map();
	const { results } = await ok(api.GET('/api/channels/groups/', { signal }));
	return new Map(results.filter((it) => ids.includes(it.id)).map((it) => [it.id, it.name]));
}

/** Channels whose names are read together. */
const NAMED_MAX = 200;

/** Returns the names of channels by their ids; of those that are gone there is none. */
export async function namesOfChannels(
	ids: readonly (number | null)[],
	signal: AbortSignal,
): Promise<Map<number, string>> {
	const wanted = [...new Set(ids.filter((it) => it !== null))].slice(0, NAMED_MAX);
	if (wanted.length === 0) return new Map();
	const query = { ids: wanted, page: 1, page_size: wanted.length };
	const found = await ok(api.GET('/api/channels/channels/', { params: { query }, signal }));
	return new Map(found.results.map((it) => [it.id, it.name]));
}
