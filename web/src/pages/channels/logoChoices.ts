// Pictures that a channel can take as its logo: that of its guide channel, those of its streams, and those of its name.

import { api, imageUrl, listed, ok, type Schemas } from '$lib/api';
import { readGuideChannel } from '../common/guide/guideChannels';
import type { ChannelRow } from './filters';

type LogoRecord = Schemas['Logo'];

/** Where a picture comes from. */
export type LogoOrigin = 'guide' | 'stream' | 'library';

export interface LogoChoice {
	/** Address of the picture, which tells the choices apart. */
	url: string;
	/** The logo of the gateway with this address. */
	logo: LogoRecord | null;
	/** Name of the guide channel, the stream or the logo. */
	name: string;
	origin: LogoOrigin;
}

/** Logos of the gateway that are offered, and addresses that are looked up among them. */
const LISTED_MAX = 24;
const LOOKED_UP_MAX = 12;
/** Words that say nothing about the picture of a channel. */
const QUALITY = /\b(u?hd|fhd|sd|4k|8k|hevc|h\.?26[45]|raw|vip|\d{3,4}[pi])\b/giu;

/** Returns the part of a channel's name that its logo may have: without country, brackets and quality. */
export const nameForLogo = (name: string): string =>
	name
		.replace(/[([{][^)\]}]*[)\]}]/gu, ' ')
		.replace(/^\s*\p{Lu}{2,3}\s*[:|-]/u, ' ')
		.replace(QUALITY, ' ')
		.replace(/[^\p{L}\p{N}&+.' ]+/gu, ' ')
		.replace(/\s+/gu, ' ')
		.trim();

/** Returns an address that this page may show. Pictures of providers are shown once the gateway has them as logos. */
export const previewOf = (it: LogoChoice): string | undefined => imageUrl(it.logo?.cache_url);

/** Joins the choices, each address once. The first one of an address says where it comes from. */
export function joinedChoices(
	guide: { url: string | null; name: string } | null,
	streams: readonly { url: string | null; name: string }[],
	logos: readonly LogoRecord[],
): LogoChoice[] {
	const byUrl = new Map(logos.map((it) => [it.url, it]));
	const all: [LogoOrigin, { url: string | null; name: string }][] = [
		...(guide ? ([['guide', guide]] as [LogoOrigin, typeof guide][]) : []),
		...streams.map((it): [LogoOrigin, typeof it] => ['stream', it]),
		...logos.map((it): [LogoOrigin, typeof it] => ['library', it]),
	];
	const choices = new Map<string, LogoChoice>();
	for (const [origin, { url, name }] of all) {
		if (url && !choices.has(url)) choices.set(url, { url, name, origin, logo: byUrl.get(url) ?? null });
	}
	return [...choices.values()];
}

async function findLogos(search: string, page_size: number, signal?: AbortSignal): Promise<LogoRecord[]> {
	const query = { search, ordering: 'name' as const, page: 1, page_size };
	return (await ok(api.GET('/api/channels/logos/', { params: { query }, signal }))).results;
}

/** Reads the pictures that are offered for a channel. With a search, logos with that name are among them. */
export async function readLogoChoices(
	row: ChannelRow,
	search: string,
	signal?: AbortSignal,
): Promise<LogoChoice[]> {
	const wanted = search.trim() || nameForLogo(row.name);
	const guideId = row.effective_epg_data_id;
	const [guide, streams, named] = await Promise.all([
		guideId === null ? null : readGuideChannel(guideId, signal).catch(() => null),
		ok(api.GET('/api/channels/channels/{id}/streams/', { params: { path: { id: row.id } }, signal })).then(
			listed,
		),
		wanted === '' ? [] : findLogos(wanted, LISTED_MAX, signal),
	]);
	const ofStreams = streams.map((it) => ({ url: it.logo_url, name: it.name }));
	const own = guide ? { url: guide.icon_url, name: guide.name } : null;
	const known = new Set(named.map((it) => it.url));
	const unknown = [...new Set([own?.url, ...ofStreams.map((it) => it.url)])]
		.filter((it): it is string => Boolean(it) && !known.has(it ?? ''))
		.slice(0, LOOKED_UP_MAX);
	const found = await Promise.all(unknown.map((url) => findLogos(url, 1, signal)));
	const byAddress = found.flat().filter((it) => unknown.includes(it.url));
	return joinedChoices(own, ofStreams, [...byAddress, ...named]);
}
