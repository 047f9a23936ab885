// Operations on selected channels and streams.

import { api, ok, type Schemas } from '$lib/api';
import type { Selection } from '$lib/list';
import {
	batchesOf,
	idsOf,
	inBatches,
	runBatches,
	type Batch,
	type BulkOutcome,
	type Filter,
	type UndoHandle,
} from '../common/bulk';
import type { ChannelFilter, StreamFilter } from './filters';
import { written, type NumberChange } from './numbering';

type Progress = (done: number, of: number) => void;

/** What an operation works on: the rows of a selection, and how many they are. */
export interface Chosen {
	rows: Batch;
	count: number;
}

/** Returns the selected rows as requests name them. */
export function chosen(selection: Selection, filter: ChannelFilter | StreamFilter, total: number): Chosen {
	const body = selection.body(filter);
	const rows: Batch = 'ids' in body ? body : { filter: filter as Filter, except: body.exclude };
	return { rows, count: selection.size(total) };
}

export const channelIds = (filter: Filter): Promise<number[]> =>
	ok(api.GET('/api/channels/channels/ids/', { params: { query: filter as ChannelFilter } }));

export const streamIds = async (filter: Filter): Promise<number[]> =>
	(await ok(api.GET('/api/channels/streams/ids/', { params: { query: filter as StreamFilter } }))).ids;

/** An outcome with the number of batches it had. */
export interface Done<A> {
	outcome: BulkOutcome<A>;
	batches: number;
}

/** Properties of a dialog that changes the selected rows. */
export interface DialogProps<A> {
	selected: Chosen;
	/** Called while the batches are sent. */
	progress: Progress;
	onclose: () => void;
	/** Called with the outcome, and the number of records that have changed if that is not the number of rows. */
	ondone: (done: Done<A>, count: number) => void;
}

async function inAll<A extends { undo?: UndoHandle | null }>(
	{ rows, count }: Chosen,
	ids: (filter: Filter) => Promise<number[]>,
	send: (batch: Batch, done: readonly A[]) => Promise<A>,
	progress?: Progress,
): Promise<Done<A>> {
	const batches = await batchesOf(rows, count, ids);
	return { outcome: await runBatches(batches, send, progress), batches: batches.length };
}

export function editChannels(chosen: Chosen, values: Record<string, unknown>, progress?: Progress) {
	const send = (rows: Batch) =>
		ok(api.POST('/api/channels/channels/edit/bulk/', { body: { ...rows, values } }));
	return inAll(chosen, channelIds, send, progress);
}

/** Numbers the channels one after the other, in the order of the list. */
export function numberChannels(chosen: Chosen, first: number, progress?: Progress) {
	const send = (rows: Batch, done: readonly Schemas['NumbersAssigned'][]) =>
		ok(
			api.POST('/api/channels/channels/assign/', {
				body: { ...rows, starting_number: numberAfter(done, first) },
			}),
		);
	return inAll<Schemas['NumbersAssigned']>(chosen, channelIds, send, progress);
}

/** Gives channels these numbers, all of them or none. */
export async function setNumbers(changes: readonly NumberChange[], progress?: Progress) {
	const body = changes.map(({ channel, to }) => ({ id: channel.id, channel_number: written(to) }));
	const send = (body: { id: number; channel_number: number }[]) =>
		ok(api.PATCH('/api/channels/channels/edit/bulk/', { body }));
	// A refusal keeps the dialog open.
	const outcome = await runBatches(body.length > 0 ? [body] : [], send, progress);
	if (outcome.error) throw outcome.error;
	return { outcome, batches: 1 };
}

/** Returns the number behind the last assigned one. */
export function numberAfter(
	done: readonly Pick<Schemas['NumbersAssigned'], 'channel_numbers'>[],
	first: number,
): number {
	const last = done.at(-1)?.channel_numbers.at(-1);
	return last === undefined ? first : last + 1;
}

export interface Renaming {
	find: string;
	replace: string;
	flags: string;
}

export function renameChannels(chosen: Chosen, renaming: Renaming, progress?: Progress) {
	const send = (rows: Batch) =>
		ok(api.POST('/api/channels/channels/edit/bulk-regex/', { body: { ...rows, ...renaming } }));
	return inAll(chosen, channelIds, send, progress);
}

/** Returns what a renaming would do, of the first batch if there are several. */
export async function previewRenaming(chosen: Chosen, renaming: Renaming, signal: AbortSignal) {
	const [rows] = await batchesOf(chosen.rows, chosen.count, channelIds);
	return ok(
		api.POST('/api/channels/channels/edit/bulk-regex/', {
			body: { ...(rows ?? { ids: [] }), ...renaming, preview: true },
			signal,
		}),
	);
}

export function deleteChannels(chosen: Chosen, progress?: Progress) {
	const send = (rows: Batch) => ok(api.POST('/api/channels/channels/bulk-delete/', { body: rows }));
	return inAll(chosen, channelIds, send, progress);
}

/** Channels that one merge takes. */
export const MERGED_MAX = 100;

/** Adds the streams of the other channels to the first one, in their order, and deletes the others. */
export async function mergeChannels(ids: readonly number[]): Promise<Done<{ undo?: UndoHandle | null }>> {
	const read = await ok(
		api.GET('/api/channels/channels/', {
			params: { query: { ids: [...ids], page: 1, page_size: MERGED_MAX } },
		}),
	);
	const byId = new Map(read.results.map((it) => [it.id, it]));
	const target = ids[0];
	const others = ids.slice(1).filter((id) => byId.has(id));
	if (target === undefined || !byId.has(target))
		return { outcome: { answers: [], undo: [], error: null }, batches: 0 };
	const stream_ids = mergedStreams(
		streamIdsOf(byId.get(target)!),
		others.map((id) => streamIdsOf(byId.get(id)!)),
	);
	const steps = [
		() =>
			ok(
				api.POST('/api/channels/channels/assign-streams/', {
					body: { ids: [target], stream_ids, mode: 'append' },
				}),
			),
		() => ok(api.POST('/api/channels/channels/bulk-delete/', { body: { ids: others } })),
	].slice(stream_ids.length > 0 ? 0 : 1);
	const outcome = await runBatches(steps, (step): Promise<{ undo?: UndoHandle | null }> => step());
	return { outcome, batches: steps.length };
}

export function streamIdsOf(channel: Pick<Schemas['ChannelRecord'], 'streams'>): number[] {
	return channel.streams.map((it) => (typeof it === 'number' ? it : it.id));
}

/** Returns the streams that the first channel lacks, each once. */
export function mergedStreams(own: readonly number[], others: readonly number[][]): number[] {
	const known = new Set(own);
	return [...new Set(others.flat())].filter((id) => !known.has(id));
}

export async function setLineup(chosen: Chosen, lineup: number, enabled: boolean, progress?: Progress) {
	const send = async (rows: Batch) => {
		const path = { id: lineup };
		return ok(
			api.PATCH('/api/channels/profiles/{id}/channels/bulk-update/', {
				params: { path },
				body: { ...rows, enabled },
			}),
		);
	};
	return inAll(chosen, channelIds, send, progress);
}

/** Values that channels can take over from their guide channels. */
export const FROM_GUIDE = ['names', 'logos', 'tvg-ids'] as const;

export function takeFromGuide(
	chosen: Chosen,
	what: (typeof FROM_GUIDE)[number],
	progress?: Progress,
): Promise<Done<Schemas['FromGuide']>> {
	const paths = {
		names: '/api/channels/channels/set-names-from-epg/',
		logos: '/api/channels/channels/set-logos-from-epg/',
		'tvg-ids': '/api/channels/channels/set-tvg-ids-from-epg/',
	} as const;
	return inAll(chosen, channelIds, (body) => ok(api.POST(paths[what], { body })), progress);
}

export interface Making {
	merge_by: 'name' | 'tvg_id' | null;
	starting_channel_number: number | null;
}

/** Makes channels from streams. Those that a filter selects are named, so that every selected content counts. */
export async function makeChannels(
	{ rows }: Chosen,
	making: Making,
	progress?: Progress,
): Promise<Done<Schemas['ChannelsMade']>> {
	const batches = inBatches(await idsOf(rows, streamIds));
	const send = (batch: { ids: number[] }) =>
		ok(api.POST('/api/channels/channels/from-stream/bulk/', { body: { stream_ids: batch.ids, ...making } }));
	return { outcome: await runBatches(batches, send, progress), batches: batches.length };
}

/** Streams that can be added to channels at once: a channel has at most as many. */
export const ASSIGNED_MAX = 1_000;

/** Adds streams to channels, behind their own ones. */
export async function assignStreams(streams: Chosen, channels: Chosen): Promise<Done<Schemas['BulkResult']>> {
	const stream_ids = await idsOf(streams.rows, streamIds);
	const send = (rows: Batch) =>
		ok(api.POST('/api/channels/channels/assign-streams/', { body: { ...rows, stream_ids, mode: 'append' } }));
	return inAll(channels, channelIds, send);
}

export function deleteStreams(chosen: Chosen, progress?: Progress) {
	const send = (rows: Batch) => ok(api.POST('/api/channels/streams/bulk-delete/', { body: rows }));
	return inAll(chosen, streamIds, send, progress);
}
