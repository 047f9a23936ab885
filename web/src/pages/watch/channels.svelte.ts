// The channels that a user may watch, in the order of their numbers.

import { api, listed, ok, type Schemas } from '$lib/api';
import { session } from '$lib/auth';
import { onChanged } from '$lib/live';
import { arrayRows, PagedRows, resetWith, type Rows } from '$lib/list';
import { resource } from '$lib/ui';

export type ChannelRow = Pick<
	Schemas['ChannelSummary'],
	'id' | 'uuid' | 'name' | 'channel_number' | 'logo_id'
>;

export interface ChannelFilter {
	search: string;
	/** Only these channels. */
	ids: readonly number[] | null;
}

const ORDER = { ordering: 'channel_number' as const, enabled: true };

const pageOf = async (filter: ChannelFilter, page: number, page_size: number, signal?: AbortSignal) => {
	const query = {
		search: filter.search,
		...ORDER,
		...(filter.ids ? { ids: [...filter.ids] } : {}),
		page,
		page_size,
	};
	return ok(api.GET('/api/channels/channels/', { params: { query }, signal }));
};

/** Channels without a number are behind all others. */
const numberOf = (it: ChannelRow | undefined): number => it?.channel_number ?? Infinity;

/** In a component: the channels that match. Users of level 0 have the short list only, which is not paged. */
export class Channels {
	#isPaged = $derived(session.level >= 1);
	#filter: () => ChannelFilter;
	#paged: PagedRows<ChannelRow>;
	#few: Rows<ChannelRow>;
	#summary: { value?: ChannelRow[] };
	#order: { value?: readonly number[] };

	constructor(filter: () => ChannelFilter, isNeeded: () => boolean = () => true) {
		this.#filter = filter;
		this.#paged = new PagedRows<ChannelRow>({
			key: (it) => it.uuid,
			fetch: async (page, size, signal) => {
				if (filter().ids?.length === 0) return { count: 0, results: [], next: null, previous: null };
				return pageOf(filter(), page, size, signal);
			},
		});
		resetWith(() => [filter(), this.#isPaged && isNeeded()], {
			reset: () => this.#isPaged && isNeeded() && this.#paged.reset(),
		});
		const summary = resource(
			() => ({ search: filter().search, isNeeded: !this.#isPaged && isNeeded() }),
			async (input, signal): Promise<ChannelRow[]> => {
				if (!input.isNeeded) return [];
				const query = { search: input.search };
				return listed(await ok(api.GET('/api/channels/channels/summary/', { params: { query }, signal })));
			},
		);
		const order = resource(
			() => ({ ...filter(), isNeeded: this.#isPaged && isNeeded() }),
			async ({ isNeeded: wanted, search, ids }, signal): Promise<readonly number[]> => {
				if (!wanted || ids?.length === 0) return [];
				const query = { search, ...ORDER, ...(ids ? { ids: [...ids] } : {}) };
				return ok(api.GET('/api/channels/channels/ids/', { params: { query }, signal }));
			},
		);
		this.#summary = summary;
		this.#order = order;
		this.#few = arrayRows(
			() => summary.value ?? [],
			(it: ChannelRow) => it.uuid,
		);
		onChanged(['channels'], () => {
			if (this.#isPaged) this.#paged.refresh();
			else void summary.reload();
			void order.reload();
		});
	}

	get rows(): Rows<ChannelRow> {
		return this.#isPaged ? this.#paged : this.#few;
	}

	/** Returns the place of a channel in the list; -1 if it is not in it, or not known yet. */
	indexOf(channel: { id: number } | null | undefined): number {
		if (!channel) return -1;
		if (!this.#isPaged) return (this.#summary.value ?? []).findIndex((it) => it.id === channel.id);
		return this.#order.value?.indexOf(channel.id) ?? -1;
	}

	/** Returns the channel that is so many places behind another one. The list has no ends. */
	async beside(channel: { id: number } | null | undefined, step: number): Promise<ChannelRow | null> {
		const count = this.#isPaged ? (this.#order.value?.length ?? 0) : (this.#summary.value?.length ?? 0);
		if (count === 0) return null;
		const at = this.indexOf(channel);
		const index = at < 0 ? 0 : (at + step + count) % count;
		const known = this.rows.at(index);
		if (known || !this.#isPaged) return known ?? null;
		return (await pageOf(this.#filter(), index + 1, 1)).results[0] ?? null;
	}

	/** Returns the channel with a number, of all that the user may watch; `null` if there is none. */
	async withNumber(number: number): Promise<ChannelRow | null> {
		if (!this.#isPaged) {
			const all = listed(await ok(api.GET('/api/channels/channels/summary/', {})));
			return all.find((it) => it.channel_number === number) ?? null;
		}
		return findNumber(number, (page, size) => pageOf({ search: '', ids: null }, page, size));
	}
}

/** Channels of a page in which a number is searched. */
const SEARCH_ROWS = 100;

/** Searches a number in pages that are ordered by numbers, by halves. */
export async function findNumber(
	number: number,
	read: (page: number, size: number) => Promise<{ count: number; results: ChannelRow[] }>,
): Promise<ChannelRow | null> {
	let low = 1;
	let high = Infinity;
	let page = 1;
	while (low <= high) {
		const { count, results } = await read(page, SEARCH_ROWS);
		if (high === Infinity) high = Math.ceil(count / SEARCH_ROWS);
		const found = results.find((it) => it.channel_number === number);
		if (found || results.length === 0) return found ?? null;
		if (number < numberOf(results[0])) high = page - 1;
		else if (number > numberOf(results.at(-1))) low = page + 1;
		else return null;
		page = Math.floor((low + high) / 2);
	}
	return null;
}
