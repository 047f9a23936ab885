import { onDestroy } from 'svelte';
import { onChanged, onFrame } from '$lib/live';
import { resource, type Resource } from '$lib/ui';
import { readPlugins, withState, type Plugin } from './model';

/** Time between two looks at the resources that processes use, in milliseconds. */
const RESOURCES_MS = 5_000;
/** Time between two answers that frames cause, in milliseconds. */
const FRAMES_MS = 500;

/** In a component: returns a function that runs another one later, once for all calls in that time. */
export function soon(run: () => unknown, ms = FRAMES_MS): () => void {
	let timer: ReturnType<typeof setTimeout> | undefined;
	onDestroy(() => clearTimeout(timer));
	return () => {
		timer ??= setTimeout(() => {
			timer = undefined;
			void run();
		}, ms);
	};
}

/** In a component: all plugins as they are now. */
export function livePlugins(): Resource<Plugin[]> {
	const found = resource(
		() => null,
		(_, signal) => readPlugins(signal),
	);
	const reload = soon(() => found.reload());
	onChanged(['plugins'], () => reload());
	onFrame('plugin_state', (frame) => {
		if (found.value) found.value = withState(found.value, frame);
		// The state comes with other facts, such as the reason of a failure.
		reload();
	});
	$effect(() => {
		const timer = setInterval(() => {
			if (!document.hidden && found.value?.some((it) => it.loaded)) void found.reload();
		}, RESOURCES_MS);
		return () => clearInterval(timer);
	});
	return found;
}
