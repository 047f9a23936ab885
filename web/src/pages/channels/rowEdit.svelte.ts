// A channel that is edited in its row.

import { api, ApiError, ok } from '$lib/api';
import { FormState } from '$lib/ui';
import type { ChannelRow } from './filters';
import { text } from './text';

/** Columns that are edited in the row, with their fields. */
export const EDITED = {
	number: 'channel_number',
	name: 'name',
	group: 'channel_group_id',
	guide: 'epg_data_id',
} as const;
export type EditedColumn = keyof typeof EDITED;

export interface RowValues {
	channel_number: number | null;
	name: string;
	channel_group_id: number | null;
	epg_data_id: number | null;
}

export const isEdited = (column: string): column is EditedColumn => Object.hasOwn(EDITED, column);

const valuesOf = (row: ChannelRow): RowValues => ({
	channel_number: row.channel_number,
	name: row.name,
	channel_group_id: row.channel_group_id,
	epg_data_id: row.epg_data_id,
});

/** Returns an error that names the channel which has the wanted number, if that is the reason. */
async function namingHolder(error: unknown, number: number | null): Promise<unknown> {
	if (!(error instanceof ApiError) || !error.fields.channel_number || number === null) return error;
	const name = await import('./cells').then((it) => it.nameOfNumber(number)).catch(() => null);
	if (name === null) return error;
	const channel_number = text().numberTaken(number, name);
	return new ApiError(error.status, error.message, { ...error.fields, channel_number }, error.body);
}

/** The row that is edited, if any. */
export class RowEdit {
	row = $state.raw<ChannelRow | null>(null);
	form = $state.raw<FormState<RowValues, ChannelRow> | null>(null);
	/** The cell that gets the focus first. */
	column = $state<EditedColumn>('name');
	#saved: (row: ChannelRow) => void;
	#begun = 0;

	/** `saved` gets the channel as the gateway answered it. */
	constructor(saved: (row: ChannelRow) => void) {
		this.#saved = saved;
	}

	isOf(row: Pick<ChannelRow, 'id'>): boolean {
		return this.row?.id === row.id;
	}

	/** Reads the channel as it is now, for the entity tag, and edits it. A row that is edited is saved first. */
	async begin(row: ChannelRow, column: string | null): Promise<void> {
		if (this.isOf(row)) return;
		if (!(await this.save())) return;
		this.#begun += 1;
		const own = this.#begun;
		const params = { path: { id: row.id } };
		const read = await ok(api.GET('/api/channels/channels/{id}/', { params }));
		if (own !== this.#begun) return;
		const form = new FormState<RowValues, ChannelRow>({
			initial: valuesOf(read),
			valuesOf,
			save: async (_, body, headers) => {
				try {
					return await ok(api.PATCH('/api/channels/channels/{id}/', { params, body, headers }));
				} catch (error) {
					throw await namingHolder(error, body.channel_number ?? null);
				}
			},
			onSaved: (saved) => this.#saved(saved),
		});
		form.show(read);
		this.column = column !== null && isEdited(column) ? column : 'name';
		this.form = form;
		this.row = read;
	}

	/** Saves what has changed, and ends. Returns false if the gateway refuses it, and the row is still edited. */
	async save(): Promise<boolean> {
		const { form } = this;
		if (!form) return true;
		if (form.isSaving) return false;
		if (form.isDirty && !(await form.submit())) return false;
		if (this.form === form) this.cancel();
		return true;
	}

	/** Ends without saving. */
	cancel(): void {
		this.#begun += 1;
		this.row = null;
		this.form = null;
	}

	/** Takes back what was typed into a cell, and returns whether there was something. */
	undo(column: EditedColumn): boolean {
		const { form, row } = this;
		if (!form || !row) return false;
		const field = EDITED[column];
		const conflict = form.conflicts.some((it) => it.name === field);
		if (conflict) form.useSaved(field);
		else if (!(field in form.changed)) return false;
		else form.values = { ...form.values, [field]: valuesOf(row)[field] };
		const { [field]: _, ...errors } = form.errors;
		form.errors = errors;
		return true;
	}

	/** Returns what is wrong with a cell: the message of the gateway, or that somebody else has changed it. */
	errorOf(column: EditedColumn, changedMeanwhile: (saved: unknown) => string): string | null {
		const { form } = this;
		if (!form) return null;
		const field = EDITED[column];
		const conflict = form.conflicts.find((it) => it.name === field);
		if (conflict) return changedMeanwhile(conflict.saved);
		return form.errors[field] ?? (column === this.column ? form.message : null);
	}
}
