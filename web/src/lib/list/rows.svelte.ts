import { untrack } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { isAbort, type Paged } from '$lib/api';
import type { Selection } from './selection.svelte';

/** Rows of a page that is read from the gateway. */
export const PAGE_ROWS = 100;
/** Pages that are kept; the ones that were used the longest ago leave first. */
export const PAGES_MAX = 50;

/** What a `List` shows. */
export interface Rows<T> {
	readonly count: number | null;
	readonly error: unknown;
	key(row: T): number | string;
	at(index: number): T | undefined;
	/** Asks for these rows; called while the user scrolls. */
	want(from: number, until: number): void;
	refresh(): void;
}

interface Options<T> {
	key: (row: T) => number | string;
	/** Reads a page, counted from 1. */
	fetch: (page: number, size: number, signal: AbortSignal) => Promise<Paged<T>>;
}

/** A list on the gateway of which only the pages around the viewport are read. */
export class PagedRows<T> implements Rows<T> {
	count = $state<number | null>(null);
	error = $state.raw<unknown>(null);

	#options: Options<T>;
	#pages = new SvelteMap<number, T[]>();
	/** Pages by their last use. */
	#used: number[] = [];
	#running = new Map<number, AbortController>();
	#wanted: [number, number] = [0, 1];
	#generation = 0;

	constructor(options: Options<T>) {
		this.#options = options;
	}

	key(row: T): number | string {
		return this.#options.key(row);
	}

	at(index: number): T | undefined {
		return this.#pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
	}

	want(from: number, until: number): void {
		const first = Math.floor(from / PAGE_ROWS);
		const last = Math.floor(Math.max(from, until - 1) / PAGE_ROWS);
		this.#wanted = [first, last];
		for (const [page, request] of this.#running) {
			if (page < first - 1 || page > last + 1) request.abort();
		}
		for (let page = first; page <= last; page += 1) {
			this.#touch(page);
			if (!this.#pages.has(page) && !this.#running.has(page) && !this.error) void this.#read(page);
		}
	}

	reset(): void {
		this.#generation += 1;
		this.#abort();
		this.#pages.clear();
		this.#used = [];
		this.count = null;
		this.error = null;
		this.#wanted = [0, 0];
		void this.#read(0);
	}

	/** Reads the visible pages again; all others when they come into view. */
	refresh(): void {
		this.#abort();
		this.error = null;
		const [first, last] = this.#wanted;
		for (const page of [...this.#pages.keys()]) if (page < first || page > last) this.#pages.delete(page);
		for (let page = first; page <= last; page += 1) void this.#read(page);
	}

	update(row: T): void {
		const key = this.#options.key(row);
		for (const [page, rows] of this.#pages) {
			const index = rows.findIndex((it) => this.#options.key(it) === key);
			if (index >= 0) this.#pages.set(page, rows.with(index, row));
		}
	}

	#abort(): void {
		for (const request of this.#running.values()) request.abort();
		this.#running.clear();
	}

	#touch(page: number): void {
		const at = this.#used.indexOf(page);
		if (at >= 0) this.#used.splice(at, 1);
		this.#used.push(page);
	}

	async #read(page: number): Promise<void> {
		const request = new AbortController();
		const generation = this.#generation;
		this.#running.set(page, request);
		try {
			const answer = await this.#options.fetch(page + 1, PAGE_ROWS, request.signal);
			if (generation !== this.#generation || request.signal.aborted) return;
			this.#pages.set(page, answer.results);
			this.count = answer.count;
			this.#touch(page);
			while (this.#used.length > PAGES_MAX) this.#pages.delete(this.#used.shift() ?? -1);
		} catch (error) {
			if (generation !== this.#generation || isAbort(error)) return;
			// The list has become shorter than this page.
			if (page > 0 && (error as { status?: number }).status === 404) this.reset();
			else this.error = error;
		} finally {
			if (this.#running.get(page) === request) this.#running.delete(page);
		}
	}
}

/** In a component: changed filters are another list, of which nothing is selected. */
export function resetWith(filter: () => unknown, rows: { reset: () => void }, selection?: Selection): void {
	let last = '';
	$effect(() => {
		const now = JSON.stringify(filter());
		if (now === last) return;
		last = now;
		untrack(() => {
			selection?.clear();
			rows.reset();
		});
	});
}

/** A list that is already here. */
export function arrayRows<T>(list: () => T[], key: (row: T) => number | string): Rows<T> {
	return {
		get count() {
			return list().length;
		},
		error: null,
		key,
		at: (index) => list()[index],
		want: () => {},
		refresh: () => {},
	};
}
