// The categories of films and series of an account.

import { api, ok } from '$lib/api';
import type { Category } from '../common/categories';

export type CategoryKind = Category['category_type'] | 'all';

/** Returns whether an account imports the titles of a category. */
export const isImported = (category: Category, account: number): boolean =>
	category.m3u_accounts.some((it) => it.m3u_account === account && it.enabled);

/** Returns the categories of a kind whose names contain a text; imported ones first. */
export function matchingCategories(
	categories: readonly Category[],
	account: number,
	search: string,
	kind: CategoryKind,
): Category[] {
	const wanted = search.trim().toLowerCase();
	const place = (it: Category): number => (isImported(it, account) ? 0 : 1);
	return categories
		.filter((it) => kind === 'all' || it.category_type === kind)
		.filter((it) => it.name.toLowerCase().includes(wanted))
		.sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name));
}

export const readRefresh = (account: number, signal?: AbortSignal) =>
	ok(api.GET('/api/m3u/accounts/{id}/refresh-vod/', { params: { path: { id: account } }, signal }));

/** Requests after which the removal of stale titles ends, whatever is left; each removes thousands. */
const CLEANINGS_MAX = 1000;

/** Removes the titles that an account no longer lists. Returns how many versions and titles were removed. */
export async function cleanStale(account: number): Promise<{ versions: number; titles: number }> {
	const removed = { versions: 0, titles: 0 };
	for (let n = 0; n < CLEANINGS_MAX; n += 1) {
		const done = await ok(api.POST('/api/vod/clean-stale/', { body: { m3u_accounts: [account] } }));
		removed.versions += done.removed_relations;
		removed.titles += done.removed_titles;
		if (!done.has_more) break;
	}
	return removed;
}

export const startRefresh = (account: number, confirm = false) =>
	ok(
		api.POST('/api/m3u/accounts/{id}/refresh-vod/', {
			params: { path: { id: account } },
			body: { confirm },
		}),
	);
