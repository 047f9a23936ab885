// Users with permissions that no admin has confirmed.

import { api, listed, ok, type Schemas } from '$lib/api';
import { chunks } from '../common/bulk';

export type Unconfirmed = Schemas['Unconfirmed'];

/** Users that one confirmation takes. The limit of the API. */
const USERS_MAX = 1_000;

export const readUnconfirmed = async (signal?: AbortSignal): Promise<Unconfirmed[]> =>
	listed(await ok(api.GET('/api/accounts/permissions/unconfirmed/', { signal })));

/** Confirms the permissions of these users. Returns how many of them have changed. */
export async function confirmFor(ids: readonly number[]): Promise<number> {
	let confirmed = 0;
	for (const user_ids of chunks(ids, USERS_MAX)) {
		const answer = await ok(api.POST('/api/accounts/permissions/confirm/', { body: { user_ids } }));
		confirmed += answer.confirmed_count;
	}
	return confirmed;
}

/** Returns the users whose name contains a text, regardless of case. */
export const found = (all: readonly Unconfirmed[], search: string): Unconfirmed[] =>
	all.filter((it) => it.username.toLowerCase().includes(search.trim().toLowerCase()));
