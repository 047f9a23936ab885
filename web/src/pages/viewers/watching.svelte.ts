// What is being watched, from the statistics of the WebSocket.

import { untrack } from 'svelte';
import { api, ok, type Schemas } from '$lib/api';
import { dateTime } from '$lib/i18n';
import { live, onFrame } from '$lib/live';
import { resource } from '$lib/ui';
import { text } from './text';
import { fileViewers, liveViewers, RateMeter, type Viewer, type Watched } from './viewers';

/** What the parts of a page show about files that are being watched. */
export interface WatchedFiles {
	readonly titles: Watched[];
	readonly past: Watched[];
}

/** In a component: who watches films, episodes and the past of channels. Only admins know. */
export function watchedFiles(isWanted: () => boolean): WatchedFiles {
	const titles = resource(
		() => ({ isWanted: isWanted() }),
		async (input, signal): Promise<Schemas['WatchedTitle'][]> =>
			input.isWanted ? (await ok(api.GET('/proxy/vod/stats', { signal }))).vod_connections : [],
	);
	onFrame('vod_stats', (frame) => {
		const stats = frame.stats as { vod_connections?: Schemas['WatchedTitle'][] } | null;
		if (isWanted() && Array.isArray(stats?.vod_connections)) titles.set(stats.vod_connections);
	});
	const sessions = resource(
		() => ({ isWanted: isWanted() }),
		async (input, signal): Promise<Schemas['CatchupSession'][]> =>
			input.isWanted ? (await ok(api.GET('/proxy/catchup/stats', { signal }))).timeshift_sessions : [],
	);
	onFrame('timeshift_stats', (frame) => {
		const stats = frame.stats as { timeshift_sessions?: Schemas['CatchupSession'][] } | null;
		if (isWanted() && Array.isArray(stats?.timeshift_sessions)) sessions.set(stats.timeshift_sessions);
	});
	const watched = $derived(
		(titles.value ?? []).flatMap(({ connections, content_uuid: uuid, content_name: name }) =>
			connections.map((it) => ({ ...it, uuid, name })),
		),
	);
	const past = $derived(
		(sessions.value ?? []).flatMap(({ connections, channel_uuid: uuid, channel_name: name, ...of }) =>
			connections.map((it) => ({
				...it,
				uuid,
				name,
				part: of.programme_start === null ? '' : text().from(dateTime(of.programme_start)),
			})),
		),
	);
	return {
		get titles() {
			return watched;
		},
		get past() {
			return past;
		},
	};
}

/** In a component: all viewers. Those of live channels are there while something asks `live` for their clients. */
export function allViewers(isWanted: () => boolean): { readonly list: Viewer[] } {
	const files = watchedFiles(isWanted);
	const meters = { title: new RateMeter(), past: new RateMeter() };
	const rates = (kind: 'title' | 'past', watched: Watched[]): Viewer[] => {
		const measured = untrack(() => meters[kind].measure(fileViewers(kind, watched, new Map())));
		return fileViewers(kind, watched, measured);
	};
	const titles = $derived(rates('title', files.titles));
	const past = $derived(rates('past', files.past));
	const list = $derived([...liveViewers(live.stats), ...titles, ...past]);
	return {
		get list() {
			return list;
		},
	};
}
