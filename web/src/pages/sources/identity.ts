// How a refresh recognises the streams of an account: the order of its keys, and what a refresh would do.

import type { Schemas } from '$lib/api';
import type { Account } from './accounts';

export type IdentityKey = Account['identity_keys'][number];
export type RefreshPreview = Schemas['RefreshPreview'];
export type PreviewedChange = RefreshPreview['changes'][number];

/** All keys in the order that an account has by default. */
export const IDENTITY_KEYS = [
	'panel_id',
	'address',
	'bare_address',
	'guide_id',
	'name_and_group',
	'name',
] as const satisfies readonly IdentityKey[];

/** The key that cannot be left out. */
export const REQUIRED_KEY: IdentityKey = 'address';

/** A key in the list of an account: whether it is compared. */
export interface KeyChoice {
	id: IdentityKey;
	isUsed: boolean;
}

/** Returns the keys of an account in their order, then those that it does not use. */
export function choicesOf(keys: readonly IdentityKey[]): KeyChoice[] {
	const unused = IDENTITY_KEYS.filter((it) => !keys.includes(it));
	return [
		...keys.map((id): KeyChoice => ({ id, isUsed: true })),
		...unused.map((id): KeyChoice => ({ id, isUsed: false })),
	];
}

/** Returns the keys that are compared, in their order. */
export const keysOf = (choices: readonly KeyChoice[]): IdentityKey[] =>
	choices.filter((it) => it.isUsed).map((it) => it.id);

export const isDefaultOrder = (choices: readonly KeyChoice[]): boolean =>
	keysOf(choices).join() === IDENTITY_KEYS.join();

/** The lists of a preview, in the order in which they are shown. */
export const CHANGE_KINDS = ['moved', 'updated', 'created', 'missing'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** Returns the list in which a change is shown. A stream with another address is one that moves. */
export function kindOf(change: PreviewedChange): ChangeKind {
	if (change.change !== 'updated') return change.change;
	return change.url_before !== change.url ? 'moved' : 'updated';
}

/** Returns the number of streams of each list. A preview lists a part of them only. */
export function countsOf(preview: RefreshPreview): Record<ChangeKind, number> {
	return {
		moved: preview.streams_moved,
		updated: preview.streams_updated - preview.streams_moved,
		created: preview.streams_created,
		missing: preview.streams_stale + preview.streams_deleted,
	};
}

/** Returns what a value was and what it becomes, or the one of both that exists. */
export function beforeAfter(before: string | null, after: string | null): string {
	if (before === null || before === after) return after ?? '';
	return after === null ? before : `${before} → ${after}`;
}
