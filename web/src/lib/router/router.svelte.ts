import { onDestroy, type Component } from 'svelte';
import { SvelteURLSearchParams } from 'svelte/reactivity';
import { base } from './base';
import type { IconName } from '../ui/icons';

/** Groups of the navigation, in their order. */
export const PAGE_GROUPS = ['watch', 'lineup', 'sources', 'manage'] as const;
export type PageGroup = (typeof PAGE_GROUPS)[number];

/** A page of the interface. */
export interface Page {
	/** First segment of its path, or two of them for a page below another one. */
	path: string;
	title: () => string;
	icon: IconName;
	/** Lowest user level; `null` needs no sign-in. */
	level: 0 | 1 | 10 | null;
	/** The group of the navigation that lists it; without one, it is reached from other pages. */
	group?: PageGroup;
	/** Place in the navigation, from its top. */
	order: number;
	/** Whether the bar of phones may show it. */
	isInBar?: boolean;
	/** Entries of the navigation for parts of the page, in place of one for the page. The query selects the part. */
	parts?: () => { title: string; icon: IconName; query?: string }[];
	/** Whether users of the level may open it; all by default. */
	isPermitted?: () => boolean;
	/** Without sidebar. */
	bare?: boolean;
	/* eslint-disable-next-line @typescript-eslint/no-explicit-any -- a page may ignore the second segment */
	load: () => Promise<{ default: Component<any> }>;
}

export const definePage = (page: Page): Page => page;

type Value = string | number | boolean | null | undefined;

/** Returns the path below the base path. */
function ownPath(pathname: string): string {
	const rest = base && pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
	return rest.startsWith('/') ? rest : `/${rest}`;
}

class Router {
	path = $state('/');
	hash = $state('');
	query = new SvelteURLSearchParams();
	#guards = new Set<() => boolean>();
	/** Asks whether unsaved input may be lost; set by the layout. */
	ask: (() => Promise<boolean>) | null = null;

	get segments(): string[] {
		return this.path.split('/').filter(Boolean).map(decodeSegment);
	}

	get id(): string | undefined {
		return this.segments[1];
	}

	get isDirty(): boolean {
		return [...this.#guards].some((it) => it());
	}

	/** Reads the address, and follows it. */
	start(): void {
		this.read();
		addEventListener('popstate', () => this.read());
		addEventListener('beforeunload', (it) => {
			if (this.isDirty) it.preventDefault();
		});
		document.addEventListener('click', (it) => this.#click(it));
	}

	read(): void {
		this.path = ownPath(location.pathname);
		this.hash = location.hash.slice(1);
		const next = new URLSearchParams(location.search);
		if (next.toString() === this.query.toString()) return;
		for (const name of [...this.query.keys()]) if (!next.has(name)) this.query.delete(name);
		for (const [name, value] of next) if (this.query.get(name) !== value) this.query.set(name, value);
	}

	async navigate(path: string, options: { replace?: boolean } = {}): Promise<void> {
		const isOtherPage = new URL(to(path), location.href).pathname !== location.pathname;
		if (isOtherPage && this.isDirty && this.ask && !(await this.ask())) return;
		if (options.replace) history.replaceState(null, '', to(path));
		else history.pushState(null, '', to(path));
		this.read();
		if (isOtherPage && !options.replace) document.querySelector('main')?.scrollTo(0, 0);
	}

	/** Loads the page again, after asking about unsaved input. Returns whether it does; `before` is run in this case. */
	async reload(before: () => void): Promise<boolean> {
		if (this.isDirty && this.ask && !(await this.ask())) return false;
		before();
		// It has been asked already.
		this.#guards.clear();
		// The set-up page has taken its code from the address.
		if (this.hash && !location.hash)
			history.replaceState(history.state, '', `${location.pathname}${location.search}#${this.hash}`);
		location.reload();
		return true;
	}

	guard(isDirty: () => boolean): () => void {
		this.#guards.add(isDirty);
		return () => this.#guards.delete(isDirty);
	}

	#click(it: MouseEvent): void {
		if (it.defaultPrevented || it.button !== 0 || it.metaKey || it.ctrlKey || it.shiftKey || it.altKey)
			return;
		const link = it.target instanceof Element ? it.target.closest('a') : null;
		if (!link?.href || link.target || link.hasAttribute('download')) return;
		const url = new URL(link.href);
		if (url.origin !== location.origin || !url.pathname.startsWith(`${base}/`)) return;
		// Files and other answers of the gateway, and anchors of this page.
		if (/^\/(api|proxy|output|assets)\//.test(ownPath(url.pathname))) return;
		if (url.hash && url.pathname === location.pathname) return;
		it.preventDefault();
		void this.navigate(ownPath(url.pathname) + url.search + url.hash);
	}
}

function decodeSegment(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

export const router = new Router();

/** Returns the address of a path of the interface. */
export const to = (path: string): string => base + path;

export function navigate(path: string, options?: { replace?: boolean }): void {
	void router.navigate(path, options);
}

/** Changes parameters of the address; `null`, `undefined`, `''` and `false` remove one. */
export function setQuery(values: Record<string, Value>, options: { replace?: boolean } = {}): void {
	const next = new URLSearchParams(location.search);
	for (const [name, value] of Object.entries(values)) {
		if (value === null || value === undefined || value === '' || value === false) next.delete(name);
		else next.set(name, String(value));
	}
	const text = next.toString();
	const path = router.path + (text ? `?${text}` : '');
	if (text !== new URLSearchParams(location.search).toString()) {
		void router.navigate(path, { replace: options.replace ?? true });
	}
}

/** In a component: asks before input that is not saved is left. */
export function leaveGuard(isDirty: () => boolean): void {
	onDestroy(router.guard(isDirty));
}
