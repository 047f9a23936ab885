// Undo of an operation of several batches: the last batch first.

import { api, ok, refusal } from '$lib/api';
import { offerUndo, problem, toast } from '$lib/ui';
import type { BulkOutcome, UndoHandle } from './bulk';
import { common } from '$lib/i18n';
import { text } from './text';

/** Seconds for which a message offers the undo. */
const SECONDS = 15;
/** Undoes the operations in this order, and ends at the first refusal. */
export async function undoAll(handles: readonly UndoHandle[]): Promise<void> {
	for (const { id } of handles) {
		await ok(api.POST('/api/channels/undo/{id}/', { params: { path: { id } } }));
	}
}

/** Shows the outcome of an operation of one or several batches, and offers to undo what was done. */
export function report<A extends { undo?: UndoHandle | null }>(
	outcome: BulkOutcome<A>,
	batches: number,
	message: string,
	undone: () => void,
): void {
	const { answers, undo, error } = outcome;
	if (answers.length === 0 && error) {
		toast(problem(error), { tone: 'bad' });
		return;
	}
	if (error === null && undo.length === 1) {
		offerUndo({ undo: undo[0]! }, message, undone);
		return;
	}
	const shown = error === null ? message : text().stoppedAfter(answers.length, batches, problem(error));
	const run = async () => {
		try {
			await undoAll(undo);
			toast(text().undone, { tone: 'good' });
			undone();
		} catch (reason) {
			toast(common().notUndone(refusal(reason)), { tone: 'bad' });
		}
	};
	const action = undo.length > 0 ? { label: common().undo, run } : undefined;
	toast(shown, { tone: error === null ? 'good' : 'bad', seconds: SECONDS, ...(action ? { action } : {}) });
}
