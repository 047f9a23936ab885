// What keeps the pages of recordings up to date.

import { onDestroy } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { session } from '$lib/auth';
import { onChanged, onFrame } from '$lib/live';
import { sizesOf } from './recordings';

/** Time between two moves of the progress bars, in milliseconds. */
const TICK_MS = 1_000;
/** Time between two readings for users who get no notifications, in milliseconds. */
const READ_MS = 5_000;

/** In a component: the time, and the sizes of growing files by id; `reload` is called when recordings have changed. */
export function liveRecordings(reload: () => unknown): {
	readonly now: number;
	sizeOf: (it: { id: number; file_size: number | null }) => number | null;
} {
	let now = $state(Date.now());
	const sizes = new SvelteMap<number, number>();
	const ticks = setInterval(() => (now = Date.now()), TICK_MS);
	onDestroy(() => clearInterval(ticks));
	onChanged(['recordings'], () => void reload());
	onFrame('recording_progress', (frame) => {
		for (const [id, size] of sizesOf(frame)) sizes.set(id, size);
	});
	if (!session.isAdmin) {
		const reads = setInterval(() => {
			if (!document.hidden) void reload();
		}, READ_MS);
		onDestroy(() => clearInterval(reads));
	}
	return {
		get now() {
			return now;
		},
		// A frame may be older than the answer, but files only grow.
		sizeOf: (it) => (it.file_size === null ? null : Math.max(it.file_size, sizes.get(it.id) ?? 0)),
	};
}
