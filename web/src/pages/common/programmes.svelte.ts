// What runs now on channels, read again when a programme ends.

import { onDestroy } from 'svelte';
import { api, ok, type Schemas } from '$lib/api';
import { resource } from '$lib/ui';

export type Running = Schemas['GridProgram'];

/** Channels of one request. The limit of the API. */
const CHANNELS_MAX = 2_000;
/** The guide may change, and a channel may have a programme later. */
const AGAIN_MS = 120_000;
const TICK_MS = 10_000;

/** Returns how much of a programme is over, from 0 to 1. */
export function progressOf(it: Pick<Running, 'start_time' | 'end_time'>, now: number): number {
	const [from, until] = [Date.parse(it.start_time), Date.parse(it.end_time)];
	return until > from ? Math.min(1, Math.max(0, (now - from) / (until - from))) : 0;
}

/** In a component: the running programmes of channels by their UUIDs, and the time for their progress. */
export function currentProgrammes(uuids: () => string[]): {
	of: (uuid: string) => Running | undefined;
	readonly now: number;
} {
	let now = $state(Date.now());
	let round = $state(0);
	let readAt = Date.now();
	const wanted = $derived([...new Set(uuids())].toSorted().slice(0, CHANNELS_MAX).join());
	const found = resource(
		() => ({ wanted, round }),
		async (input, signal): Promise<Map<string, Running>> => {
			readAt = Date.now();
			if (input.wanted === '') return new Map();
			const body = { channel_uuids: input.wanted.split(',') };
			const running = await ok(api.POST('/api/epg/current-programs/', { body, signal }));
			return new Map(running.map((it) => [it.channel_uuid ?? '', it]));
		},
	);
	const timer = setInterval(() => {
		if (document.hidden) return;
		now = Date.now();
		const isOver = [...(found.value?.values() ?? [])].some((it) => Date.parse(it.end_time) <= now);
		if (isOver || now - readAt > AGAIN_MS) round += 1;
	}, TICK_MS);
	onDestroy(() => clearInterval(timer));
	return {
		of: (uuid) => found.value?.get(uuid),
		get now() {
			return now;
		},
	};
}
