import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import type { Account } from './accounts';
import { bestFirst, fileOf, namedGuides, shortAddress, sourceOf, type Offer } from './offers';
import OffersTab from './OffersTab.svelte';

const offer = (url: string, matches: number, added: number): Offer => ({
	url,
	error: null,
	channels_count: 300,
	same_id_count: 1,
	matches_count: matches,
	new_matches_count: added,
});

test.each([
	['http://a.example/xml/guide_DE.xml.gz?key=secret', 'http://a.example … guide_DE.xml.gz'],
	['http://a.example:8080/xmltv.php?username=anna&password=secret', 'http://a.example:8080'],
	['https://a.example/epg/0123456789abcdef', 'https://a.example'],
	['https://anna:secret@a.example/epg.xml', 'https://a.example … epg.xml'],
	['nonsense', ''],
])('the address %s is shown without what may be secret', (url, shown) =>
	expect(shortAddress(url)).toBe(shown),
);

test('a source gets the name of host and file, and a number if the name is taken', () => {
	const url = 'http://a.example/guide_DE.xml.gz';
	expect(fileOf(url)).toBe('guide_DE.xml.gz');
	expect(sourceOf(url, [], 'Guide')).toMatchObject({ name: 'a.example guide_DE', source_type: 'xmltv', url });
	expect(sourceOf(url, ['A.example guide_de', 'a.example guide_DE 2'], 'Guide').name).toBe(
		'a.example guide_DE 3',
	);
	expect(sourceOf('nonsense', [], 'Guide').name).toBe('Guide');
});

test('guides that serve channels without a guide come first, and an address counts once', () => {
	const answers = new Map([
		['b', { offer: offer('b', 40, 0), failure: null }],
		['c', { offer: offer('c', 12, 12), failure: null }],
		['d', { offer: null, failure: 'no' }],
	]);
	const named = namedGuides(['a', 'b', 'c', 'b', 'd'], [{ id: 9, url: 'a' }, { id: 8 }], answers);
	expect(named.map((it) => it.url)).toEqual(['a', 'b', 'c', 'd']);
	expect(named.map((it) => it.source)).toEqual([9, null, null, null]);
	expect(named[3]?.failure).toBe('no');
	expect(bestFirst(named).map((it) => it.url)).toEqual(['c', 'b', 'a', 'd']);
});

const URLS = [
	'http://a.example/one.xml?key=secret',
	'http://a.example/two.xml',
	'http://b.example/three.xml',
];
const ACCOUNT = { id: 7, epg_urls: URLS } as unknown as Account;
let added: { name: string; url: string }[];
let read: string[];
/** Answers to the next guides; one that is missing waits until its request is aborted. */
let answers: Map<string, object>;

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	[added, read] = [[], []];
	answers = new Map([
		[URLS[0]!, offer(URLS[0]!, 3, 0)],
		[URLS[1]!, { ...offer(URLS[1]!, 0, 0), error: 'It answers 404.' }],
		[URLS[2]!, offer(URLS[2]!, 5, 4)],
	]);
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const { pathname } = new URL(request.url);
		if (pathname === '/api/m3u/accounts/7/guides/preview/') {
			const { urls } = (await request.json()) as { urls: string[] };
			read.push(...urls);
			const answer = answers.get(urls[0]!);
			if (answer) return Response.json({ results: [answer] });
			return new Promise((_, reject) =>
				request.signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError'))),
			);
		}
		if (request.method === 'POST') {
			const source = (await request.json()) as { name: string; url: string };
			added.push(source);
			return Response.json({ id: 20 + added.length, ...source }, { status: 201 });
		}
		return Response.json(added.map((it, n) => ({ id: 21 + n, ...it })));
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const rows = () => screen.getAllByRole('listitem').map((it) => it.textContent ?? '');

test('an admin reads the guides, sees how many channels each serves, and adds the best one', async () => {
	render(OffersTab, { account: ACCOUNT });
	await fireEvent.click(await screen.findByRole('button', { name: 'Read all 3 guides' }));
	await waitFor(() => expect(read).toEqual(URLS));
	await screen.findByText('Serves 5 channels, 4 of them without a guide now');
	await waitFor(() => expect(rows()[0]).toContain('three.xml'));
	expect(rows()[1]).toContain('Serves 3 channels, all of which have a guide');
	expect(rows()[2]).toContain('It answers 404.');
	expect(document.body.textContent).not.toContain('secret');
	await fireEvent.click(screen.getByRole('button', { name: /Add guide 3 as a source/ }));
	await screen.findByText('added');
	expect(added).toEqual([
		{ name: 'b.example three', source_type: 'xmltv', url: URLS[2], refresh_interval: 24 },
	]);
	expect(screen.getByRole('link', { name: 'Open guide 3' }).getAttribute('href')).toBe(
		'/sources/21?kind=guides',
	);
});

test('reading stops on demand, and what was read stays', async () => {
	answers.delete(URLS[1]!);
	render(OffersTab, { account: ACCOUNT });
	await fireEvent.click(await screen.findByRole('button', { name: 'Read all 3 guides' }));
	await waitFor(() => expect(read).toEqual(URLS.slice(0, 2)));
	await fireEvent.click(screen.getByRole('button', { name: 'Stop reading' }));
	await screen.findByRole('button', { name: 'Read all 2 guides' });
	expect(rows()[0]).toContain('Serves 3 channels');
	expect(read).toHaveLength(2);
});
