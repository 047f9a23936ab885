import { untrack } from 'svelte';
import { ApiError, isAbort, problem } from '$lib/api';

/** Placeholders appear after this time, so that quick answers do not flicker. */
const SLOW_MS = 200;

/** Something that is read from the gateway, and again whenever its input changes. */
export class Resource<T> {
	value = $state.raw<T | undefined>(undefined);
	error = $state.raw<ApiError | null>(null);
	isLoading = $state(false);
	isSlow = $state(false);

	#load: (signal: AbortSignal) => Promise<T>;
	#running: AbortController | null = null;

	constructor(load: (signal: AbortSignal) => Promise<T>) {
		this.#load = load;
	}

	async reload(): Promise<void> {
		this.#running?.abort();
		const running = new AbortController();
		this.#running = running;
		this.isLoading = true;
		const slow = setTimeout(() => (this.isSlow = this.#running === running), SLOW_MS);
		try {
			const value = await this.#load(running.signal);
			if (this.#running !== running) return;
			this.value = value;
			this.error = null;
		} catch (error) {
			if (this.#running !== running || isAbort(error)) return;
			this.error = error instanceof ApiError ? error : new ApiError(0, problem(error));
		} finally {
			clearTimeout(slow);
			if (this.#running === running) {
				this.isLoading = false;
				this.isSlow = false;
			}
		}
	}

	/** Puts what the gateway answered to a write in its place. */
	set(value: T): void {
		this.abort();
		this.value = value;
		this.error = null;
	}

	abort(): void {
		this.#running?.abort();
		this.#running = null;
		this.isLoading = false;
		this.isSlow = false;
	}
}

/** In a component: reads something, and again when the input changes. */
export function resource<I, T>(
	input: () => I,
	load: (input: I, signal: AbortSignal) => Promise<T>,
): Resource<T> {
	let current: I;
	const made = new Resource<T>((signal) => load(current, signal));
	$effect(() => {
		current = input();
		// Of an object, each member counts.
		if (typeof current === 'object' && current !== null) JSON.stringify(current);
		untrack(() => void made.reload());
		return () => made.abort();
	});
	return made;
}
