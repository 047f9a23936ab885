// From a refused address to the setting of its account that allows it.

import { api, listed, ok } from '$lib/api';

/** What was refused, as far as the page knows it. */
export interface Refused {
	account?: number | null;
	stream?: number | null;
	/** The address of a channel, or of the preview of a stream. */
	uuid?: string;
	/** Id of a channel. */
	channel?: number | null;
}

/** The label of the cause in timelines and in the health of streams. */
const CAUSE = 'forbidden_address';

/** Returns whether a message says that the setting allows what was refused. */
export const namesAllowedNetworks = (reason: string | null | undefined): boolean =>
	reason?.includes('"allowed_networks"') ?? false;

/** Returns the path of the setting. */
export const settingOf = (account: number | null): string =>
	account === null ? '/sources' : `/sources/${account}?field=allowed_networks`;

/** Returns the account whose address was refused; `null` if it is not known any more. */
export async function accountOf(it: Refused): Promise<number | null> {
	if (it.account != null) return it.account;
	if (it.channel != null) return accountOfChannel(it.channel);
	const stream = it.stream ?? (it.uuid === undefined ? null : await refusedStream(it.uuid));
	if (stream === null) return null;
	const params = { path: { id: stream } };
	return (await ok(api.GET('/api/channels/streams/{id}/', { params }))).m3u_account;
}

/** Returns the stream that was refused last, as the timeline of what plays shows it. */
async function refusedStream(uuid: string): Promise<number | null> {
	const timeline = await ok(api.GET('/proxy/ts/timeline/{uuid}', { params: { path: { uuid } } }));
	const entries = timeline.runs.flatMap((run) => run.entries.toReversed());
	return entries.find((it) => it.cause === CAUSE && it.stream_id !== null)?.stream_id ?? null;
}

async function accountOfChannel(id: number): Promise<number | null> {
	const answer = await ok(api.GET('/api/channels/channels/{id}/streams/', { params: { path: { id } } }));
	const streams = listed(answer);
	const refused = streams.find((it) => it.health?.last_cause === CAUSE);
	return (refused ?? streams.find((it) => it.m3u_account !== null))?.m3u_account ?? null;
}
