// The favourites of the user: channels that the user marked with a star.

import { SvelteSet } from 'svelte/reactivity';
import { api, ok } from '$lib/api';
import { session } from '$lib/auth';
import { attempt, resource } from '$lib/ui';

/** In a component: the favourites, and how one is added or removed. Users of level 0 have none. */
export class Favourites {
	readonly canHave = $derived(session.level >= 1);
	#ids = new SvelteSet<number>();

	constructor() {
		const found = resource(
			() => ({ canHave: this.canHave }),
			async ({ canHave }, signal): Promise<number[]> =>
				canHave ? (await ok(api.GET('/api/channels/favorites/', { signal }))).channels : [],
		);
		$effect(() => this.#set(found.value ?? []));
	}

	/** Ids of the channels, in the order in which they were added. */
	get ids(): number[] {
		return [...this.#ids];
	}

	has(id: number): boolean {
		return this.#ids.has(id);
	}

	/** Adds or removes a channel. */
	async toggle(id: number): Promise<void> {
		const params = { path: { channel_id: id } };
		await attempt(async () => {
			if (this.has(id)) {
				await ok(api.DELETE('/api/channels/favorites/{channel_id}/', { params }));
				this.#ids.delete(id);
			} else this.#set((await ok(api.PUT('/api/channels/favorites/{channel_id}/', { params }))).channels);
		});
	}

	#set(ids: readonly number[]): void {
		this.#ids.clear();
		for (const id of ids) this.#ids.add(id);
	}
}
