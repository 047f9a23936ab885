import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import type { Account } from './accounts';
import IdentityTab from './IdentityTab.svelte';

const ACCOUNT = { id: 7, identity_keys: ['address', 'guide_id', 'name'] } as unknown as Account;
const PREVIEW = {
	identity_keys: ['guide_id', 'address', 'name'],
	entries: 3,
	streams_unchanged: 0,
	streams_updated: 2,
	streams_moved: 1,
	streams_created: 0,
	streams_stale: 1,
	streams_deleted: 0,
	entries_left_out: 0,
	streams_ambiguous: 0,
	recognised_by: [
		{ key: 'guide_id', streams: 2 },
		{ key: 'address', streams: 0 },
		{ key: 'name', streams: 0 },
	],
	needs_confirmation: null,
	changes: [
		{
			change: 'updated',
			stream_id: 1,
			recognised_by: 'guide_id',
			name_before: 'News',
			name: 'News',
			host_before: 'one.example',
			host: 'two.example',
			url_before: 'http://one.example/secret',
			url: 'http://two.example/secret',
		},
		{
			change: 'missing',
			stream_id: 2,
			recognised_by: null,
			name_before: 'Film',
			name: null,
			host_before: 'one.example',
			host: null,
			url_before: 'http://one.example/film',
			url: null,
		},
	],
};

let sent: { path: string; body: unknown }[];
let answer: () => Response;

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	sent = [];
	answer = () => Response.json(PREVIEW);
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const body = (await request.json()) as object;
		sent.push({ path: new URL(request.url).pathname, body });
		return request.method === 'PATCH' ? Response.json({ ...ACCOUNT, ...body }) : answer();
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const moveUp = () => fireEvent.click(screen.getByRole('button', { name: 'Move Guide id up' }));

test('an admin moves a key, sees what a refresh would do with it, and saves it', async () => {
	const onsaved = vi.fn();
	render(IdentityTab, { account: ACCOUNT, onsaved });
	expect(screen.getByRole<HTMLInputElement>('checkbox', { name: 'Address' }).disabled).toBe(true);
	await moveUp();
	// The button of the first entry is disabled, so the focus goes to the other one.
	await waitFor(() =>
		expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Move Guide id down' })),
	);
	await fireEvent.click(screen.getByRole('button', { name: 'Preview a refresh' }));
	await screen.findByText(/The list has 3 entries/);
	expect(sent).toEqual([
		{
			path: '/api/m3u/accounts/7/refresh-preview/',
			body: { identity_keys: ['guide_id', 'address', 'name'] },
		},
	]);
	expect(screen.getByText('Recognises 2 streams.')).toBeTruthy();
	expect(screen.getByText('one.example → two.example')).toBeTruthy();
	expect(document.body.textContent).not.toContain('secret');
	await fireEvent.click(screen.getByRole('tab', { name: /Missing/ }));
	const missing = screen.getByRole('group', { name: 'Missing' });
	expect(within(missing).getByText('Film')).toBeTruthy();
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(onsaved).toHaveBeenCalled());
	expect(sent.at(-1)).toEqual({
		path: '/api/m3u/accounts/7/',
		body: { identity_keys: ['guide_id', 'address', 'name'] },
	});
});

test('another order removes the preview of the former one, and a refused preview says why', async () => {
	render(IdentityTab, { account: ACCOUNT, onsaved: vi.fn() });
	await fireEvent.click(screen.getByRole('button', { name: 'Preview a refresh' }));
	await screen.findByText(/The list has 3 entries/);
	await fireEvent.click(screen.getByRole('checkbox', { name: 'Name' }));
	expect(screen.queryByText(/The list has 3 entries/)).toBeNull();
	answer = () => Response.json({ detail: 'The account has no list.' }, { status: 400 });
	await fireEvent.click(screen.getByRole('button', { name: 'Preview a refresh' }));
	await screen.findByText('The account has no list.');
	expect(sent.at(-1)?.body).toEqual({ identity_keys: ['address', 'guide_id'] });
});
