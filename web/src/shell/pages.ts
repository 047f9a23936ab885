import type { Page } from '$lib/router';

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

/** Returns the page of a first segment. */
export const pageOf = (segment: string | undefined): Page | undefined =>
	pages.find((it) => it.path === segment);
