// Operations on many rows: one request where the API takes the selection as it is, otherwise batches of ids.

import type { Schemas } from '$lib/api';

export type UndoHandle = Schemas['UndoHandle'];

/** Filters of a list by name, as in queries. */
export type Filter = Readonly<Record<string, string | number | boolean>>;

/** The rows of one request: ids, or filters with exceptions. */
export type Batch = { ids: number[] } | { filter: Filter; except: number[] };

/** Rows that one request takes. The limit of the API. */
export const ROWS_MAX = 10_000;
/** Rows of one batch of an operation that needs several. */
export const BATCH_SIZE = 5_000;

export function chunks<T>(all: readonly T[], size: number): T[][] {
	return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size));
}

/**
 * Splits a selection into requests. A selection by filters is one request while the API takes that many rows; beyond
 * that its ids are read once, so that a batch that changes names does not change which rows the next one selects.
 */
export async function batchesOf(
	selected: Batch,
	count: number,
	readIds: (filter: Filter) => Promise<number[]>,
): Promise<Batch[]> {
	if ('ids' in selected) return inBatches(selected.ids);
	if (count <= ROWS_MAX) return [selected];
	const except = new Set(selected.except);
	return inBatches((await readIds(selected.filter)).filter((id) => !except.has(id)));
}

export function inBatches(ids: readonly number[]): { ids: number[] }[] {
	return chunks(ids, BATCH_SIZE).map((it) => ({ ids: it }));
}

/** Returns all ids of a selection, for an operation that needs them in order. */
export async function idsOf(
	selected: Batch,
	readIds: (filter: Filter) => Promise<number[]>,
): Promise<number[]> {
	if ('ids' in selected) return selected.ids;
	const except = new Set(selected.except);
	return (await readIds(selected.filter)).filter((id) => !except.has(id));
}

export interface BulkOutcome<A> {
	answers: A[];
	/** The handles of the finished batches, in the order in which they have to be undone. */
	undo: UndoHandle[];
	/** The reason why a batch failed. The batches before it remain; those after it were not sent. */
	error: unknown;
}

/** Sends the batches one after the other. Each is all or nothing; the first failure ends the operation. */
export async function runBatches<B, A extends { undo?: UndoHandle | null }>(
	batches: readonly B[],
	send: (batch: B, done: readonly A[]) => Promise<A>,
	progress: (done: number, of: number) => void = () => {},
): Promise<BulkOutcome<A>> {
	const answers: A[] = [];
	let error: unknown = null;
	for (const batch of batches) {
		progress(answers.length, batches.length);
		try {
			answers.push(await send(batch, answers));
		} catch (reason) {
			error = reason;
			break;
		}
	}
	if (error === null) progress(batches.length, batches.length);
	return { answers, undo: answers.flatMap((it) => it.undo ?? []).reverse(), error };
}
