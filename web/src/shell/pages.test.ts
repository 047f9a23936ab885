import { expect, test } from 'vitest';
import { barFor, entriesOf, groupsFor, isOpened, pageOf, pages } from './pages';

test('a page below another one has an address of its own', () => {
	expect(pageOf(['now', 'viewers'])?.path).toBe('now/viewers');
	expect(pageOf(['now', '0c1c4ff5-3fbc-4b0b-a7a0-2a1f3a3f2b11'])?.path).toBe('now');
	expect(pageOf(['now'])?.path).toBe('now');
	expect(pageOf(['no-such-page'])).toBeUndefined();
	expect(pageOf([])).toBeUndefined();
});

test('the navigation needs no texts of a page but its title', () => {
	const sources = import.meta.glob<string>('../pages/*/page.ts', {
		query: '?raw',
		import: 'default',
		eager: true,
	});
	expect(Object.keys(sources)).toHaveLength(pages.length);
	for (const [path, source] of Object.entries(sources)) {
		const imported = [...source.matchAll(/^import .* from '(.*)';$/gm)].map((it) => it[1] ?? '');
		// What is imported is in the first load; a page itself loads when it is opened.
		expect(
			imported.filter((it) => !it.startsWith('$lib/')),
			path,
		).toEqual(['../../shell/titlesText']);
	}
	expect(pages.map((it) => it.title()).every((it) => it !== '')).toBe(true);
});

test('no two pages have one path, or one place in the navigation', () => {
	expect(new Set(pages.map((it) => it.path)).size).toBe(pages.length);
	expect(new Set(pages.map((it) => it.order)).size).toBe(pages.length);
	const ids = entriesOf(pages).map((it) => it.id);
	expect(new Set(ids).size).toBe(ids.length);
});

test('an admin finds all pages in four groups', () => {
	const groups = groupsFor(10).map(({ name, entries }) => [name, entries.map((it) => it.id)]);
	expect(groups).toEqual([
		['watch', ['/now', '/guide', '/watch', '/library']],
		['lineup', ['/channels', '/streams', '/lineups', '/logos']],
		['sources', ['/sources', '/sources?kind=guides', '/slots', '/health']],
		[
			'manage',
			[
				'/users',
				'/now/viewers',
				'/history',
				'/integrations',
				'/plugins',
				'/nodes',
				'/settings/backups',
				'/settings/profiles',
				'/activity',
				'/settings',
			],
		],
	]);
});

test('users see the groups that they may open, and at most four pages in the bar', () => {
	expect(groupsFor(0).map((it) => it.name)).toEqual(['watch']);
	expect(groupsFor(1).map((it) => it.name)).toEqual(['watch', 'lineup']);
	expect(barFor(0).map((it) => it.path)).toEqual(['guide', 'watch', 'library']);
	expect(barFor(10).map((it) => it.path)).toEqual(['now', 'guide', 'watch', 'library']);
});

test.each([
	['', ['/sources']],
	['tab=groups', ['/sources']],
	['kind=guides', ['/sources?kind=guides']],
	['kind=guides&q=a', ['/sources?kind=guides']],
])('of a page with parts, one entry is open at the query %s', (query, open) => {
	const entries = entriesOf(pages.filter((it) => it.path === 'sources'));
	const page = pageOf(['sources']);
	expect(entries.filter((it) => isOpened(it, page, new URLSearchParams(query))).map((it) => it.id)).toEqual(
		open,
	);
	expect(entries.some((it) => isOpened(it, pageOf(['now']), new URLSearchParams(query)))).toBe(false);
});
