import { SvelteSet } from 'svelte/reactivity';

/** What a request for many records names. */
export type SelectionBody<F> = { ids: number[] } | { filter: F; exclude: number[] };

/** Selected records: some ids, or everything that matches a filter except some ids. */
export class Selection {
	isAll = $state(false);
	/** Selected ids, or the exceptions. */
	#ids = new SvelteSet<number>();

	get isEmpty(): boolean {
		return !this.isAll && this.#ids.size === 0;
	}

	has(id: number): boolean {
		return this.#ids.has(id) !== this.isAll;
	}

	/** Returns the number of selected records among all that match. */
	size(count: number): number {
		return this.isAll ? Math.max(0, count - this.#ids.size) : this.#ids.size;
	}

	toggle(id: number): void {
		if (!this.#ids.delete(id)) this.#ids.add(id);
	}

	/** Selects or deselects one. */
	put(id: number, isSelected: boolean): void {
		if (this.has(id) !== isSelected) this.toggle(id);
	}

	set(ids: Iterable<number>): void {
		this.clear();
		for (const id of ids) this.#ids.add(id);
	}

	all(): void {
		this.#ids.clear();
		this.isAll = true;
	}

	clear(): void {
		this.#ids.clear();
		this.isAll = false;
	}

	get ids(): number[] {
		return this.isAll ? [] : [...this.#ids];
	}

	body<F extends Record<string, unknown>>(filter: F): SelectionBody<F> {
		return this.isAll ? { filter, exclude: [...this.#ids] } : { ids: [...this.#ids] };
	}
}
