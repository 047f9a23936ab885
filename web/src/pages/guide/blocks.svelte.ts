import { SvelteMap } from 'svelte/reactivity';
import { api, isAbort, ok, type Schemas } from '$lib/api';
import { BLOCK_MS } from './axis';

export type GridProgramme = Schemas['GridProgram'];

/** Channels that are kept together. */
export const BLOCK_ROWS = 8;
/** Blocks that are kept; the ones that were used the longest ago leave first. */
export const BLOCKS_MAX = 300;
/** Channels of one request at most. */
const CHANNELS_MAX = 48;

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
	/** Requests by the blocks that they read. */
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
		for (const request of new Set(this.#running.values())) {
			const keys = [...this.#running].filter(([, it]) => it === request).map(([key]) => key);
			if (!keys.some((key) => this.#wanted.has(key))) request.abort();
		}
		for (const key of this.#wanted.keys()) this.#touch(key);
		if (this.error) return;
		const isMissing = (key: string): boolean =>
			!this.#blocks.has(key) && (this.#running.get(key)?.signal.aborted ?? true);
		this.#ask(groups, (channels) => blocks.filter((it) => isMissing(keyOf(channels, it))));
	}

	/** Returns whether the programmes of these channels are here. */
	has(channels: readonly number[], blocks: readonly number[]): boolean {
		return blocks.every((it) => this.#blocks.has(keyOf(channels, it)));
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
		for (const request of this.#running.values()) request.abort();
		const groups = new Map<string, number[]>();
		const blocks = new Map<string, number[]>();
		for (const [channels, block] of this.#wanted.values()) {
			groups.set(channels.join(), channels);
			blocks.set(channels.join(), [...(blocks.get(channels.join()) ?? []), block]);
		}
		this.#ask([...groups.values()], (channels) => blocks.get(channels.join()) ?? []);
	}

	abort(): void {
		for (const request of this.#running.values()) request.abort();
	}

	#touch(key: string): void {
		const at = this.#used.indexOf(key);
		if (at >= 0) this.#used.splice(at, 1);
		this.#used.push(key);
	}

	/** Asks for blocks of groups of channels: for those of the same time together. */
	#ask(groups: readonly (readonly number[])[], blocksOf: (channels: readonly number[]) => number[]): void {
		const spans = new Map<string, { first: number; last: number; groups: (readonly number[])[] }>();
		for (const channels of groups) {
			for (const [first, last] of runs(blocksOf(channels))) {
				const known = spans.get(`${first} ${last}`) ?? { first, last, groups: [] };
				known.groups.push(channels);
				spans.set(`${first} ${last}`, known);
			}
		}
		for (const span of spans.values()) {
			const step = Math.max(1, Math.floor(CHANNELS_MAX / BLOCK_ROWS));
			for (let n = 0; n < span.groups.length; n += step)
				void this.#read(span.groups.slice(n, n + step), span.first, span.last);
		}
	}

	async #read(groups: readonly (readonly number[])[], first: number, last: number): Promise<void> {
		const request = new AbortController();
		const blocks = Array.from({ length: last - first + 1 }, (_, n) => first + n);
		const keys = groups.flatMap((it) => blocks.map((block) => keyOf(it, block)));
		for (const key of keys) this.#running.set(key, request);
		try {
			const [from, until] = [first * BLOCK_MS, (last + 1) * BLOCK_MS];
			const programmes = await this.#load(groups.flat(), from, until, request.signal);
			if (request.signal.aborted) return;
			for (const block of blocks) {
				const found = byChannel(programmes.filter((it) => isIn(it, block)));
				for (const channels of groups) {
					const own = channels.flatMap((it) => (found.has(it) ? [[it, found.get(it) ?? []] as const] : []));
					this.#blocks.set(keyOf(channels, block), new Map(own));
					this.#touch(keyOf(channels, block));
				}
			}
			while (this.#used.length > BLOCKS_MAX) this.#blocks.delete(this.#used.shift() ?? '');
		} catch (error) {
			if (!isAbort(error) && !request.signal.aborted) this.error = error;
		} finally {
			for (const key of keys) if (this.#running.get(key) === request) this.#running.delete(key);
		}
	}
}

/** Whether a programme runs in a block. */
const isIn = (it: GridProgramme, block: number): boolean =>
	Date.parse(it.start_time) < (block + 1) * BLOCK_MS && Date.parse(it.end_time) > block * BLOCK_MS;

/** Returns the first and last numbers of those that follow each other. */
function runs(numbers: readonly number[]): [first: number, last: number][] {
	const found: [number, number][] = [];
	for (const it of numbers.toSorted((a, b) => a - b)) {
		const last = found.at(-1);
		if (last && it === last[1] + 1) last[1] = it;
		else found.push([it, it]);
	}
	return found;
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
