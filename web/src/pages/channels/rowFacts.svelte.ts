// What the rows of channels show and their records lack: the states of their streams, and the names of their guide channels.

import { SvelteMap } from 'svelte/reactivity';
import { api, listed, ok } from '$lib/api';
import { streamIdsOf } from './actions';
import type { ChannelRow } from './filters';
import type { StreamState } from './problems';

/** Streams that are read for a page of channels; of channels beyond that, no state is shown. */
const STREAMS_MAX = 1_000;
/** Entries that are kept; the oldest ones leave first. */
const KEPT_MAX = 20_000;

/** Keeps what was read last. */
function keep<T>(map: SvelteMap<number, T>, entries: Iterable<readonly [number, T]>): void {
	for (const [id, value] of entries) {
		map.delete(id);
		map.set(id, value);
	}
	for (const id of map.keys()) {
		if (map.size <= KEPT_MAX) return;
		map.delete(id);
	}
}

export class RowFacts {
	#streams = new SvelteMap<number, StreamState>();
	#guides = new SvelteMap<number, string>();

	stream = (id: number): StreamState | undefined => this.#streams.get(id);

	guideName = (id: number | null): string => (id === null ? '' : (this.#guides.get(id) ?? ''));

	/** Reads what the rows of a page lack. The rows are shown before; a failure leaves them as they are. */
	async read(rows: readonly ChannelRow[], signal?: AbortSignal): Promise<void> {
		await Promise.allSettled([this.#readStreams(rows, signal), this.#readGuides(rows, signal)]);
	}

	async #readStreams(rows: readonly ChannelRow[], signal?: AbortSignal): Promise<void> {
		const ids = [...new Set(rows.flatMap(streamIdsOf))].slice(0, STREAMS_MAX);
		if (ids.length === 0) return;
		const found = await ok(api.POST('/api/channels/streams/by-ids/', { body: { ids }, signal }));
		keep(
			this.#streams,
			found.map(({ id, health, is_stale }) => [id, { health, is_stale }] as const),
		);
	}

	async #readGuides(rows: readonly ChannelRow[], signal?: AbortSignal): Promise<void> {
		const ids = [...new Set(rows.flatMap((it) => it.effective_epg_data_id ?? []))];
		if (ids.length === 0) return;
		const found = listed(await ok(api.GET('/api/epg/epgdata/', { params: { query: { ids } }, signal })));
		keep(
			this.#guides,
			found.map(({ id, name }) => [id, name] as const),
		);
	}
}
