// The channels with their numbers, for what would happen to them.

import { api, ok } from '$lib/api';
import { thousandths, type Numbered } from './numbering';

/** The smallest number of a channel. */
const SMALLEST = 0.001;
/** Channels whose names are read although they have no number. */
const NAMED_MAX = 50;

/** Reads all channels that have a number, by their ids. */
export async function readNumbered(signal?: AbortSignal): Promise<Map<number, Numbered>> {
	const query = { start: SMALLEST };
	const range = await ok(api.GET('/api/channels/channels/numbers-in-range/', { params: { query }, signal }));
	return new Map(
		range.occupants.map((it) => [
			it.id,
			{
				id: it.id,
				name: it.name,
				number: thousandths(it.channel_number),
				isAutomatic: it.auto_created && !it.has_channel_number_override,
			},
		]),
	);
}

/** Returns these channels in this order, also those without a number. */
export async function numberedOf(
	ids: readonly number[],
	all: ReadonlyMap<number, Numbered>,
	signal?: AbortSignal,
): Promise<Numbered[]> {
	const nameless = ids.filter((id) => !all.has(id)).slice(0, NAMED_MAX);
	const names = new Map<number, string>();
	if (nameless.length > 0) {
		const query = { ids: nameless, page: 1, page_size: nameless.length };
		const { results } = await ok(api.GET('/api/channels/channels/', { params: { query }, signal }));
		for (const it of results) names.set(it.id, it.name);
	}
	return ids.map((id) => all.get(id) ?? { id, name: names.get(id) ?? '', number: null, isAutomatic: false });
}

/** Returns the name of the channel that has a number. */
export async function nameOfNumber(number: number): Promise<string | null> {
	const query = { start: number, end: number };
	const { occupants } = await ok(api.GET('/api/channels/channels/numbers-in-range/', { params: { query } }));
	return occupants[0]?.name ?? null;
}
