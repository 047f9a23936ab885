import { SvelteMap } from 'svelte/reactivity';
import { api, isAbort, ok, type Schemas } from '$lib/api';
import { BLOCK_MS } from './axis';

export type GridProgramme = Schemas['GridProgram'];

/** Channels of one request. */
export const BLOCK_ROWS = 50;
/** Answers that are kept; the ones that were used the longest ago leave first. */
export const BLOCKS_MAX = 40;

export type LoadBlock = (
	channels: number[],
	from: number,
	until: number,
	signal: AbortSignal,
) => Promise<GridProgramme[]>;

type ByChannel = ReadonlyMap<number, readonly GridProgramme[]>;

export const loadBlock: LoadBlock = async (channels, from, until, signal) => {
	const iso = (time: number) => new Date(time).toISOString();
	const query = { channels, start: iso(from), end: iso(until) };
	return (await ok(api.GET('/api/epg/grid/', { params: { query }, signal }))).data;
};

const keyOf = (channels: readonly number[], block: number): string => `${block}:${channels.join()}`;

/** The programmes of the visible channels and hours, and of some that were visible before. */
export class GuideBlocks {
	error = $state.raw<unknown>(null);

	#load: LoadBlock;
	#blocks = new SvelteMap<string, ByChannel>();
	#running = new Map<string, AbortController>();
	#used: string[] = [];
	#wanted = new Map<string, [channels: number[], block: number]>();

	constructor(load: LoadBlock = loadBlock) {
		this.#load = load;
	}

	/** Asks for these groups of channels in these spans of time; called while the user scrolls. */
	want(groups: readonly number[][], blocks: readonly number[]): void {
		this.#wanted.clear();
		for (const channels of groups) {
			for (const block of blocks) this.#wanted.set(keyOf(channels, block), [channels, block]);
		}
		for (const [key, request] of this.#running) if (!this.#wanted.has(key)) request.abort();
		for (const [key, [channels, block]] of this.#wanted) {
			this.#touch(key);
			if (!this.#blocks.has(key) && !this.#running.has(key) && !this.error) {
				void this.#read(key, channels, block);
			}
		}
	}

	/** Returns the programmes of a channel, or `undefined` while an answer is missing. */
	programmes(
		channels: readonly number[],
		channel: number,
		blocks: readonly number[],
	): GridProgramme[] | undefined {
		const found: GridProgramme[] = [];
		for (const block of blocks) {
			const known = this.#blocks.get(keyOf(channels, block));
			if (!known) return undefined;
			found.push(...(known.get(channel) ?? []));
		}
		return found;
	}

	/** Reads the visible part again; everything else when it comes into view. */
	refresh(): void {
		this.error = null;
		for (const key of [...this.#blocks.keys()]) if (!this.#wanted.has(key)) this.#blocks.delete(key);
		for (const [key, [channels, block]] of this.#wanted) {
			this.#running.get(key)?.abort();
			void this.#read(key, channels, block);
		}
	}

	abort(): void {
		for (const request of this.#running.values()) request.abort();
	}

	#touch(key: string): void {
		const at = this.#used.indexOf(key);
		if (at >= 0) this.#used.splice(at, 1);
		this.#used.push(key);
	}

	async #read(key: string, channels: number[], block: number): Promise<void> {
		const request = new AbortController();
		this.#running.set(key, request);
		try {
			const from = block * BLOCK_MS;
			const programmes = await this.#load(channels, from, from + BLOCK_MS, request.signal);
			if (request.signal.aborted) return;
			this.#blocks.set(key, byChannel(programmes));
			this.#touch(key);
			while (this.#used.length > BLOCKS_MAX) this.#blocks.delete(this.#used.shift() ?? '');
		} catch (error) {
			if (!isAbort(error) && !request.signal.aborted) this.error = error;
		} finally {
			if (this.#running.get(key) === request) this.#running.delete(key);
		}
	}
}

/** Several channels may show the same guide. */
function byChannel(programmes: readonly GridProgramme[]): ByChannel {
	const found = new Map<number, GridProgramme[]>();
	for (const programme of programmes) {
		for (const channel of programme.channel_ids ?? []) {
			const known = found.get(channel);
			if (known) known.push(programme);
			else found.set(channel, [programme]);
		}
	}
	return found;
}
