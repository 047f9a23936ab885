import { PAGE_GROUPS, type Page, type PageGroup } from '$lib/router';
import type { IconName } from '$lib/ui';

const modules = import.meta.glob<{ default: Page }>('../pages/*/page.ts', { eager: true });

/** All pages, in the order of the navigation. */
export const pages: Page[] = Object.values(modules)
	.map((it) => it.default)
	.sort((a, b) => a.order - b.order);

/** Returns the pages that a user of this level may open. */
export const pagesFor = (level: number): Page[] =>
	pages.filter((it) => it.level !== null && mayOpen(it, level));

/** Returns whether a user of this level may open a page. */
export const mayOpen = (page: Page, level: number): boolean =>
	page.level === null || (page.level <= level && (page.isPermitted?.() ?? true));

/** Returns the page at these segments: one with both of them as its path, otherwise one with the first. */
export const pageOf = ([first, second]: string[]): Page | undefined =>
	pages.find((it) => it.path === `${first}/${second}`) ?? pages.find((it) => it.path === first);

/** Entries of the bar at the bottom of phones, before "More". */
const BAR_ENTRIES = 4;

/** Returns the pages in the bar of phones. */
export const barFor = (level: number): Page[] =>
	pagesFor(level)
		.filter((it) => it.isInBar)
		.slice(0, BAR_ENTRIES);

/** An entry of the navigation: a page or a part of one. */
export interface NavigationEntry {
	/** Path with its query, for the address. */
	id: string;
	page: Page;
	title: string;
	icon: IconName;
	/** The query that selects the part. */
	query?: string;
}

/** Returns the entries of the pages. */
export const entriesOf = (list: Page[]): NavigationEntry[] =>
	list.flatMap((page) => {
		const parts = page.parts?.() ?? [{ title: page.title(), icon: page.icon }];
		return parts.map((it) => ({
			...it,
			page,
			id: `/${page.path}${'query' in it && it.query ? `?${it.query}` : ''}`,
		}));
	});

/** Returns the groups of the navigation that have entries for users of this level. */
export function groupsFor(level: number): { name: PageGroup; entries: NavigationEntry[] }[] {
	const mine = pagesFor(level);
	return PAGE_GROUPS.map((name) => ({
		name,
		entries: entriesOf(mine.filter((it) => it.group === name)),
	})).filter((it) => it.entries.length > 0);
}

/** Returns whether the opened page is that of an entry, of parts the one that the query selects. */
export function isOpened(entry: NavigationEntry, opened: Page | undefined, query: URLSearchParams): boolean {
	if (entry.page !== opened) return false;
	const selects = (part: { query?: string }): boolean =>
		part.query !== undefined && [...new URLSearchParams(part.query)].every(([k, v]) => query.get(k) === v);
	return entry.query === undefined ? !(entry.page.parts?.() ?? []).some(selects) : selects(entry);
}
