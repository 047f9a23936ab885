// A preview of the channels that `from-stream/bulk/` creates, by the same rules, for the first streams of a list.

import type { Schemas } from '$lib/api';

export type MergeBy = 'name' | 'tvg_id' | null;
type Stream = Pick<Schemas['StreamRecord'], 'id' | 'name' | 'tvg_id' | 'stream_chno'>;
type Known = Pick<Schemas['ChannelRecord'], 'name' | 'tvg_id' | 'channel_number'>;

export interface PlannedChannel {
	number: number;
	name: string;
	/** Streams of the channel that are among the examined ones. */
	streams: number;
}

export interface Plan {
	channels: PlannedChannel[];
	/** Streams that are added to channels that exist already. */
	toExisting: number;
}

/** The text by which streams and channels are compared; `null` if nothing can have the same. */
function keyOf(by: MergeBy, name: string, tvgId: string | null): string | null {
	if (by === null) return null;
	const words = (by === 'name' ? name : (tvgId ?? ''))
		.toLowerCase()
		.split(/\s+/)
		.filter((it) => it !== '');
	return words.length > 0 ? words.join(' ') : null;
}

/**
 * Plans channels for streams. Without a first number each channel gets the number of the provider if it is free,
 * otherwise the lowest free one; with one, numbers follow each other and skip those that are taken.
 */
export function planChannels(
	streams: readonly Stream[],
	known: readonly Known[],
	by: MergeBy,
	first: number | null,
): Plan {
	const taken = new Set(known.map((it) => it.channel_number));
	const existing = new Set(known.map((it) => keyOf(by, it.name, it.tvg_id)).filter((it) => it !== null));
	const planned = new Map<string, PlannedChannel>();
	const plan: Plan = { channels: [], toExisting: 0 };
	const lowest = (from: number): number => {
		let number = from;
		while (taken.has(number)) number++;
		return number;
	};
	let next = first ?? 1;
	for (const stream of streams) {
		const key = keyOf(by, stream.name, stream.tvg_id);
		const same = key === null ? undefined : planned.get(key);
		if (key !== null && existing.has(key)) {
			plan.toExisting++;
			continue;
		}
		if (same) {
			same.streams++;
			continue;
		}
		const wanted = stream.stream_chno;
		const isFree = first === null && wanted !== null && wanted > 0 && !taken.has(wanted);
		const number = isFree ? wanted : lowest(next);
		if (!isFree && first !== null) next = number + 1;
		taken.add(number);
		const channel = { number, name: stream.name, streams: 1 };
		plan.channels.push(channel);
		if (key !== null) planned.set(key, channel);
	}
	return plan;
}
