// The guides that the playlist of an account names: what each would give, and how one becomes a source.

import type { Schemas } from '$lib/api';
import { hostOf } from './accounts';
import { INTERVAL_HOURS, nameFor } from './guides/guides';

export type Offer = Schemas['GuideOffer'];

/** A guide that the playlist names. */
export interface Named {
	/** Its place among those that the playlist names. */
	id: number;
	url: string;
	offer: Offer | null;
	/** Why the gateway did not answer. */
	failure: string | null;
	/** Id of the source that already has this address. */
	source: number | null;
}

/** Returns the guides that a playlist names, each address once. */
export function namedGuides(
	urls: readonly string[],
	sources: readonly { id: number; url?: string | null }[],
	answers: ReadonlyMap<string, { offer: Offer | null; failure: string | null }>,
): Named[] {
	return [...new Set(urls)].map((url, id) => ({
		id,
		url,
		offer: answers.get(url)?.offer ?? null,
		failure: answers.get(url)?.failure ?? null,
		source: sources.find((it) => it.url === url)?.id ?? null,
	}));
}

/** Returns the guides with those first that serve most channels without a guide, and most channels. */
export const bestFirst = (guides: readonly Named[]): Named[] =>
	guides.toSorted(
		(a, b) =>
			(b.offer?.new_matches_count ?? -1) - (a.offer?.new_matches_count ?? -1) ||
			(b.offer?.matches_count ?? -1) - (a.offer?.matches_count ?? -1) ||
			a.id - b.id,
	);

/** Endings of the names of guide files. Another last part of a path may be a token. */
const FILE = /^[\w.-]{1,80}\.(xml|xmltv|gz|xz|zip)$/i;

/** Returns the name of the file of an address, if it is one of a guide; the rest may hold credentials. */
export function fileOf(url: string): string {
	try {
		const last = new URL(url).pathname.split('/').at(-1) ?? '';
		return FILE.test(last) ? last : '';
	} catch {
		return '';
	}
}

/** Returns host and file of an address, without what may be secret. */
export const shortAddress = (url: string): string =>
	[hostOf(url), fileOf(url)].filter((it) => it !== '').join(' … ');

/** Returns the source that a guide becomes, with a name that no other source has. */
export function sourceOf(url: string, taken: readonly string[], fallback: string) {
	const file = fileOf(url).replace(/(\.(xml|xmltv))?(\.(gz|xz|zip))?$/i, '');
	const name = [nameFor(url, null) || fallback, file].filter((it) => it !== '').join(' ');
	const names = new Set(taken.map((it) => it.toLowerCase()));
	let free = name;
	for (let n = 2; names.has(free.toLowerCase()); n += 1) free = `${name} ${n}`;
	return { name: free, source_type: 'xmltv' as const, url, refresh_interval: INTERVAL_HOURS };
}
