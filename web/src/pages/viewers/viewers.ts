// Who watches what, as one list: live channels, films, episodes, and the past of channels.

import type { Schemas } from '$lib/api';
import type { ChannelStats } from '$lib/live';
import { deviceOf } from './device';

type Connection = Schemas['VodConnection'];

export const KINDS = ['live', 'title', 'past'] as const;
export type Kind = (typeof KINDS)[number];

/** A connection that watches. */
export interface Viewer {
	/** Kind and id of the connection. */
	id: string;
	kind: Kind;
	/** Id for the request that disconnects it. */
	client: string;
	/** Empty without a login. */
	user: string;
	device: string;
	agent: string;
	address: string;
	/** Empty without a cluster. */
	node: string;
	/** UUID of the channel or title. */
	uuid: string;
	/** Name of the channel or title. */
	name: string;
	/** Number of the channel; empty without one. */
	number: string;
	/** The part of the past that plays, or what a radio station says; a programme is looked up by the UUID. */
	part: string;
	/** Seconds since it began. */
	seconds: number;
	/** To the viewer, in kilobits per second; `null` while it is not known. */
	rate: number | null;
	/** Bytes that were sent. */
	sent: number;
	/** Bytes that the viewer lost because it was too slow; `null` where nothing can be lost. */
	lost: number | null;
	/** Format of a live channel; empty for files. */
	format: string;
}

/** Returns the viewers of live channels. */
export const liveViewers = (stats: ChannelStats | null): Viewer[] =>
	(stats?.channels ?? []).flatMap((channel) =>
		(channel.clients ?? []).map((it) => ({
			id: `live ${it.node ?? ''} ${it.client_id}`,
			kind: 'live' as const,
			client: it.client_id,
			user: it.username ?? '',
			device: deviceOf(it.user_agent),
			agent: it.user_agent,
			address: it.ip_address,
			node: it.node ?? '',
			uuid: channel.channel_id,
			name: channel.channel_name,
			number: channel.channel_number,
			part: channel.title ?? '',
			seconds: it.duration,
			rate: it.bitrate_kbps,
			sent: it.bytes_sent,
			lost: it.missed_bytes,
			format: it.output_format ?? '',
		})),
	);

/** A player of a file, with what it plays. */
export type Watched = Connection & {
	uuid: string;
	name: string;
	/** Which part it plays, for people. */
	part?: string;
};

/** Returns the viewers of files, with the measured rates of their connections. */
export const fileViewers = (
	kind: Exclude<Kind, 'live'>,
	watched: readonly Watched[],
	rates: ReadonlyMap<string, number>,
): Viewer[] =>
	watched.map((it) => {
		const id = `${kind} ${it.node ?? ''} ${it.client_id}`;
		return {
			id,
			kind,
			client: it.client_id,
			user: it.username ?? '',
			device: deviceOf(it.user_agent),
			agent: it.user_agent,
			address: it.client_ip,
			node: it.node ?? '',
			uuid: it.uuid,
			name: it.name,
			number: '',
			part: it.part ?? '',
			seconds: it.duration,
			rate: rates.get(id) ?? null,
			sent: it.bytes_sent,
			lost: null,
			format: '',
		};
	});

/** Measures the rates of connections whose totals are reported now and then. */
export class RateMeter {
	#before = new Map<string, { seconds: number; sent: number }>();
	rates: ReadonlyMap<string, number> = new Map();

	/** Takes the totals of all connections of one report. */
	measure(viewers: readonly Pick<Viewer, 'id' | 'seconds' | 'sent'>[]): ReadonlyMap<string, number> {
		const rates = new Map<string, number>();
		const now = new Map<string, { seconds: number; sent: number }>();
		for (const it of viewers) {
			const before = this.#before.get(it.id);
			const seconds = it.seconds - (before?.seconds ?? it.seconds);
			if (before && seconds > 0)
				rates.set(it.id, Math.max(0, ((it.sent - before.sent) * 8) / 1000 / seconds));
			else if (before && this.rates.has(it.id)) rates.set(it.id, this.rates.get(it.id) ?? 0);
			now.set(it.id, seconds > 0 || !before ? { seconds: it.seconds, sent: it.sent } : before);
		}
		this.#before = now;
		this.rates = rates;
		return rates;
	}
}

/** What the list shows, as the address of the page holds it. */
export interface ViewerFilter {
	search: string;
	kind: string;
	format: string;
	node: string;
}

/** Returns the viewers that match all words of the search and the chosen values. */
export function selected(
	viewers: readonly Viewer[],
	{ search, kind, format, node }: ViewerFilter,
	programme: (uuid: string) => string,
): Viewer[] {
	const words = search.toLowerCase().split(/\s+/).filter(Boolean);
	return viewers.filter((it) => {
		if (kind && it.kind !== kind) return false;
		if (format && it.format !== format) return false;
		if (node && it.node !== node) return false;
		if (words.length === 0) return true;
		const own = it.kind === 'live' ? programme(it.uuid) : '';
		const text = [it.user, it.agent, it.device, it.address, it.name, it.number, it.part, it.node, own]
			.join(' ')
			.toLowerCase();
		return words.every((word) => text.includes(word));
	});
}

export const ORDERS = ['user', 'device', 'address', 'name', 'seconds', 'rate', 'lost'] as const;
type Order = (typeof ORDERS)[number];

const compare = (a: string | number | null, b: string | number | null): number =>
	typeof a === 'string' && typeof b === 'string'
		? a.localeCompare(b, undefined, { numeric: true, sensitivity: 'base' })
		: Number(a ?? -1) - Number(b ?? -1);

/** Returns the viewers in an order such as `-rate`. Equal ones keep one order, so that rows stay in their places. */
export function ordered(viewers: readonly Viewer[], ordering: string | null): Viewer[] {
	const name = (ordering ?? '').replace(/^-/, '') as Order;
	const by = ORDERS.includes(name) ? name : 'user';
	const sign = ordering?.startsWith('-') ? -1 : 1;
	return viewers.toSorted((a, b) => sign * compare(a[by], b[by]) || compare(a.id, b.id));
}

/** Returns the viewers of a user. Names are the same regardless of case. */
export const ofUser = (viewers: readonly Viewer[], username: string): Viewer[] =>
	viewers.filter((it) => it.user !== '' && it.user.toLowerCase() === username.toLowerCase());

/** Returns how many connections each user has, by name in lower case. */
export function countsByUser(viewers: readonly Viewer[]): Map<string, number> {
	const counts = new Map<string, number>();
	for (const { user } of viewers) {
		const name = user.toLowerCase();
		if (name !== '') counts.set(name, (counts.get(name) ?? 0) + 1);
	}
	return counts;
}
