import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import type { Account } from './accounts';
import { scoreOf, targetsOf, type Replacement, type StreamPair } from './replacement';
import ReplaceTab from './ReplaceTab.svelte';

const ACCOUNT = { id: 7, name: 'Old' } as unknown as Account;
const account = (id: number, name: string, more = {}) => ({
	id,
	name,
	is_active: true,
	locked: false,
	...more,
});
const ACCOUNTS = [
	account(7, 'Old'),
	account(9, 'Zeta'),
	account(8, 'New'),
	account(10, 'Off', { is_active: false }),
	account(1, 'Custom', { locked: true }),
];
const pair = (id: number, name: string): StreamPair => ({
	stream_id: id,
	name,
	host: 'one.example',
	replacement_id: id + 100,
	replacement_name: `UK: ${name}`,
	replacement_host: 'two.example',
	paired_by: 'guide_id',
	score: 98,
	channels_count: 1,
});
const PREVIEW: Replacement = {
	message: '',
	preview: true,
	channels_count: 3,
	duplicates_count: 2,
	duplicates_kept_count: 0,
	pairs_count: 3,
	unpaired_count: 1,
	paired_by: [
		{ key: 'panel_id', streams: 0 },
		{ key: 'guide_id', streams: 3 },
		{ key: 'name', streams: 0 },
	],
	pairs: [pair(701, 'News'), pair(702, 'Sport')],
	unpaired: [{ stream_id: 703, name: 'Local', host: 'one.example', reason: 'ambiguous', channels_count: 2 }],
	undo: null,
};
const DONE = {
	...PREVIEW,
	message: 'Replaced 2 streams',
	preview: false,
	undo: { id: 5, url: '/api/channels/undo/5/', expires_at: '2026-01-01T00:00:00Z' },
};

let sent: { path: string; body: Record<string, unknown> }[];
let refused: { path: string; answer: () => Response } | null;

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	sent = [];
	refused = null;
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const path = new URL(request.url).pathname;
		if (request.method === 'GET') return Response.json({ count: ACCOUNTS.length, results: ACCOUNTS });
		const text = await request.text();
		const body = (text ? JSON.parse(text) : {}) as Record<string, unknown>;
		sent.push({ path, body });
		if (refused?.path === path) return refused.answer();
		if (path.startsWith('/api/channels/undo/')) {
			return Response.json({ message: 'Undone: Replaced 2 streams', changed_count: 3, undo: null });
		}
		if (!body.preview) return Response.json(DONE);
		const isMore = body.offset === 200;
		return Response.json(isMore ? { ...PREVIEW, pairs: [pair(704, 'Film')], unpaired: [] } : PREVIEW);
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const press = (name: string | RegExp) => fireEvent.click(screen.getByRole('button', { name }));
const target = () => screen.findByRole<HTMLSelectElement>('combobox', { name: 'Replace with' });

async function choose(name: string): Promise<void> {
	const select = await target();
	select.selectedIndex = [...select.options].findIndex((it) => it.text === name);
	await fireEvent.change(select);
}

const REPLACE = '/api/m3u/accounts/7/replace-with/';

test('an admin sees the pairs, leaves one out, replaces the rest and takes it back', async () => {
	render(ReplaceTab, { account: ACCOUNT });
	const options = [...(await target()).options].map((it) => it.text);
	expect(options).toEqual(['Choose a source', 'New', 'Zeta']);
	expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Preview' }).disabled).toBe(true);
	await choose('New');
	await press('Preview');
	const pairs = within(await screen.findByRole('group', { name: 'Pairs' }));
	expect(sent).toEqual([
		{ path: REPLACE, body: { account: 8, preview: true, min_score: 85, offset: 0, limit: 200 } },
	]);
	expect(pairs.getByText('UK: News')).toBeTruthy();
	expect(pairs.getAllByText('one.example → two.example')).toHaveLength(2);
	expect(pairs.getAllByText('98 %')).toHaveLength(2);
	expect(pairs.queryByText('UK: Film')).toBeNull();
	await press('List more');
	await pairs.findByText('UK: Film');
	expect(screen.queryByRole('button', { name: 'List more' })).toBeNull();
	await fireEvent.click(screen.getByRole('tab', { name: /Without a counterpart/ }));
	expect(
		within(screen.getByRole('group', { name: 'Without a counterpart' })).getByText('Local'),
	).toBeTruthy();
	await fireEvent.click(screen.getByRole('tab', { name: /Pairs/ }));
	await fireEvent.click(screen.getByRole('checkbox', { name: 'Sport' }));
	expect(screen.getByText('1 stream left out.')).toBeTruthy();
	await press(/Replace the streams of 3 channels/);
	await screen.findByText('Replaced 2 streams');
	expect(sent.at(-1)).toEqual({
		path: REPLACE,
		body: { account: 8, min_score: 85, except: [702], limit: 0 },
	});
	expect(screen.queryByRole('group', { name: 'Pairs' })).toBeNull();
	await press('Undo');
	await waitFor(() => expect(screen.queryByText('Replaced 2 streams')).toBeNull());
	expect(sent.at(-1)?.path).toBe('/api/channels/undo/5/');
});

test('another choice removes the preview, a refused one says why, and a refused undo stays possible', async () => {
	render(ReplaceTab, { account: ACCOUNT });
	await choose('New');
	await press('Preview');
	await screen.findByRole('group', { name: 'Pairs' });
	await choose('Zeta');
	expect(screen.queryByRole('group', { name: 'Pairs' })).toBeNull();
	const detail = 'The account has no live streams. Refresh it first.';
	refused = { path: REPLACE, answer: () => Response.json({ account: [detail] }, { status: 400 }) };
	await press('Preview');
	await screen.findByText(new RegExp(detail));
	refused = null;
	await press('Preview');
	await screen.findByRole('group', { name: 'Pairs' });
	await press(/Replace the streams/);
	await screen.findByText('Replaced 2 streams');
	const body = { detail: 'changed', conflicts: [{ name: 'News', message: 'The channel was changed.' }] };
	refused = { path: '/api/channels/undo/5/', answer: () => Response.json(body, { status: 409 }) };
	await press('Undo');
	await waitFor(() => expect(sent.at(-1)?.path).toBe('/api/channels/undo/5/'));
	expect(screen.getByText('Replaced 2 streams')).toBeTruthy();
	expect(screen.getByRole('button', { name: 'Undo' })).toBeTruthy();
});

test('scores are whole and within their limits, and only other active accounts can take the place', () => {
	expect([null, 0, 85, 92.4, 101].map(scoreOf)).toEqual([85, 85, 85, 92, 100]);
	expect(targetsOf(ACCOUNTS, 8).map((it) => it.name)).toEqual(['Old', 'Zeta']);
});
