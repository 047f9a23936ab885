// The filters of the two lists: in the address of the page, and in requests.
//
// Channels and streams are filtered beside each other, so that the names of the latter begin with `s`.

import type { Schemas } from '$lib/api';

export const CHANNEL_ORDERINGS = [
	'channel_number',
	'-channel_number',
	'name',
	'-name',
	'channel_group__name',
	'-channel_group__name',
] as const;
export const STREAM_ORDERINGS = [
	'name',
	'-name',
	'channel_group__name',
	'-channel_group__name',
	'm3u_account__name',
	'-m3u_account__name',
	'health',
	'-health',
] as const;
export const CHANNEL_STATES = ['active', 'hidden'] as const;
export const CHANNEL_ONLY = ['streamless', 'stale', 'failing', 'unguided', 'unplayed', 'edited'] as const;
export const STREAM_USES = ['unused', 'used_here'] as const;
export const CONTENTS = ['live', 'movie', 'series', 'separator'] as const;

/** Filters of `/api/channels/channels/`. */
export type ChannelFilter = {
	search?: string;
	channel_group?: string[];
	visibility_filter?: (typeof CHANNEL_STATES)[number];
	channel_profile_id?: number;
	only_streamless?: boolean;
	only_stale?: boolean;
	only_failing?: boolean;
	only_unplayed?: boolean;
	only_has_overrides?: boolean;
	epg?: ['false'];
	ordering?: (typeof CHANNEL_ORDERINGS)[number];
};

/** Filters of `/api/channels/streams/`. */
export type StreamFilter = {
	search?: string;
	channel_group?: string[];
	m3u_account?: number[];
	unassigned?: boolean;
	assigned?: number;
	hide_stale?: boolean;
	content_type?: (typeof CONTENTS)[number][];
	ordering?: (typeof STREAM_ORDERINGS)[number];
};

function choice<T extends string>(values: readonly T[], value: string | null): T | undefined {
	return values.find((it) => it === value);
}

function id(value: string | null): number | undefined {
	return value !== null && /^[1-9]\d{0,9}$/.test(value) ? Number(value) : undefined;
}

/** Removes members that are not set, because two filters are compared by their text. */
function set<T extends object>(filter: T): T {
	return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)) as T;
}

/** Reads the filters of the list of channels. A value that the page does not know is ignored. */
export function channelFilter(query: URLSearchParams): ChannelFilter {
	const only = choice(CHANNEL_ONLY, query.get('only'));
	const group = id(query.get('group'));
	return set({
		search: query.get('q') || undefined,
		channel_group: group === undefined ? undefined : [String(group)],
		visibility_filter: choice(CHANNEL_STATES, query.get('state')),
		channel_profile_id: id(query.get('lineup')),
		only_streamless: only === 'streamless' || undefined,
		only_stale: only === 'stale' || undefined,
		only_failing: only === 'failing' || undefined,
		only_unplayed: only === 'unplayed' || undefined,
		only_has_overrides: only === 'edited' || undefined,
		epg: only === 'unguided' ? (['false'] as ['false']) : undefined,
		ordering: choice(CHANNEL_ORDERINGS, query.get('ordering')),
	});
}

/** Reads the filters of the list of streams. `channel` is the opened channel. Without a choice, only live streams are listed. */
export function streamFilter(query: URLSearchParams, channel?: number): StreamFilter {
	const [group, account] = [id(query.get('sgroup')), id(query.get('source'))];
	const use = choice(STREAM_USES, query.get('use'));
	const content = query.get('content');
	return set({
		search: query.get('sq') || undefined,
		channel_group: group === undefined ? undefined : [String(group)],
		m3u_account: account === undefined ? undefined : [account],
		unassigned: use === 'unused' || undefined,
		assigned: use === 'used_here' ? channel : undefined,
		hide_stale: query.get('stale') === 'hide' || undefined,
		content_type: content === 'all' ? undefined : [choice(CONTENTS, content) ?? ('live' as const)],
		ordering: choice(STREAM_ORDERINGS, query.get('sordering')),
	});
}

/** Names of the parameters that filter, without the order. */
export const CHANNEL_PARAMETERS = ['q', 'group', 'state', 'lineup', 'only'];
export const STREAM_PARAMETERS = ['sq', 'sgroup', 'source', 'use', 'stale', 'content'];

/** Returns changes of the address that remove all these filters. */
export function cleared(parameters: readonly string[]): Record<string, null> {
	return Object.fromEntries(parameters.map((it) => [it, null]));
}

/** A row of the list of channels, whose streams are ids. */
export type ChannelRow = Schemas['ChannelRecord'];
export type StreamRow = Schemas['StreamRecord'];
