// The rates of live channels over the last five minutes, as long as this tab is open.

import { SvelteMap } from 'svelte/reactivity';
import { added, type Sample } from '$lib/chart';
import { live, type ChannelStats } from '$lib/live';

/** Statistics come once a second; a small line needs fewer points. In milliseconds, a little less than five seconds. */
const INTERVAL_MS = 4_800;
/** Points that are further apart are not joined, in milliseconds. */
export const RATE_GAP_MS = 12_000;
const MARKS_MAX = 20;

export interface RateHistory {
	samples: Sample[];
	/** When another stream took over, in milliseconds since 1970. */
	marks: number[];
	failovers: number;
}

/** The histories of the channels that play. */
export class Rates {
	#by = new SvelteMap<string, RateHistory>();

	of(channel: string): RateHistory | undefined {
		return this.#by.get(channel);
	}

	take(stats: ChannelStats): void {
		const at = Date.parse(stats.timestamp);
		if (Number.isNaN(at)) return;
		const present = new Set(stats.channels.map((it) => it.channel_id));
		for (const id of [...this.#by.keys()]) if (!present.has(id)) this.#by.delete(id);
		for (const { channel_id: id, bitrate_kbps, failovers = 0 } of stats.channels) {
			const before = this.#by.get(id);
			const isNew = before !== undefined && failovers > before.failovers;
			const last = before?.samples.at(-1)?.at ?? -Infinity;
			if (!isNew && at - last < INTERVAL_MS) continue;
			this.#by.set(id, {
				samples: added(before?.samples ?? [], { at, value: bitrate_kbps ?? null }),
				marks: [...(before?.marks ?? []), ...(isNew ? [at] : [])].slice(-MARKS_MAX),
				failovers,
			});
		}
	}
}

export const rates = new Rates();
// They are kept while other pages are open, so that the lines do not begin anew.
live.on('channel_stats', () => {
	if (live.stats) rates.take(live.stats);
});
