import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import * as requests from '$lib/api';
import { session } from '$lib/auth';
import AddSource from './AddSource.svelte';
import type { Account } from './accounts';

const account = (more: object = {}) =>
	({
		id: 7,
		name: 'Home',
		uploaded_file: null,
		allowed_networks: 'of_playlist',
		account_type: 'STD',
		...more,
	}) as unknown as Account;
const DONE = {
	account: 7,
	task_id: 'a',
	phase: 'done',
	outcome: 'success',
	bytes: 0,
	entries: 1,
	streams_created: 1,
	streams_updated: 0,
	streams_gone: 0,
	message: '',
};

/** Bodies of the requests that changed the account. */
let changes: unknown[];

/** A gateway whose account names these hosts. */
function gateway(imported: Account, local: { count: number; hosts: string[] } | null): void {
	changes = [];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const { pathname } = new URL(request.url);
		if (pathname === '/api/m3u/refresh/7/') return Response.json(DONE);
		if (pathname === '/api/m3u/accounts/7/local-hosts/')
			return local ? Response.json(local) : Response.json({ detail: 'Failed.' }, { status: 500 });
		if (request.method === 'PATCH') {
			const body = (await request.json()) as object;
			changes.push(body);
			return Response.json({ ...imported, ...body });
		}
		if (pathname.startsWith('/api/m3u/accounts/')) return Response.json(imported);
		return Response.json({ detail: 'Not found.' }, { status: 404 });
	});
	vi.spyOn(requests, 'upload').mockResolvedValue(imported);
}

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
});
afterEach(() => {
	vi.unstubAllGlobals();
	vi.restoreAllMocks();
	session.user = null;
});

async function addFile(): Promise<void> {
	await fireEvent.click(screen.getByRole('tab', { name: 'File' }));
	const input = await screen.findByLabelText(/Playlist file/);
	const file = new File(['#EXTM3U'], 'home.m3u');
	Object.defineProperty(input, 'files', { value: [file] });
	await fireEvent.change(input);
	await fireEvent.click(screen.getByRole('button', { name: 'Fetch the streams' }));
}

async function addAddress(): Promise<void> {
	const input = screen.getByLabelText(/Address of the playlist/);
	await fireEvent.input(input, { target: { value: 'http://tv.example/list.m3u' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Fetch the streams' }));
}

test('an uploaded list shows its hosts in the local network, and they are allowed with one click', async () => {
	gateway(account({ uploaded_file: 'a.m3u' }), { count: 22, hosts: ['10.255.255.1', 'nas'] });
	const ondone = vi.fn();
	render(AddSource, { ondone });
	await addFile();
	expect(await screen.findByText('10.255.255.1, nas + 20')).toBeTruthy();
	expect(ondone).not.toHaveBeenCalled();
	expect(changes).toEqual([]);
	expect(screen.getByRole<HTMLInputElement>('checkbox').checked).toBe(true);
	await fireEvent.click(screen.getByRole('button', { name: 'Continue' }));
	await waitFor(() => expect(ondone).toHaveBeenCalledTimes(1));
	expect(changes).toEqual([{ allowed_networks: 'private' }]);
	expect(ondone.mock.calls[0]?.[0]).toMatchObject({ id: 7, allowed_networks: 'private' });
});

test('an admin who does not allow them changes nothing', async () => {
	gateway(account({ uploaded_file: 'a.m3u' }), { count: 1, hosts: ['10.255.255.1'] });
	const ondone = vi.fn();
	render(AddSource, { ondone });
	await addFile();
	await fireEvent.click(await screen.findByRole('checkbox'));
	await fireEvent.click(screen.getByRole('button', { name: 'Continue' }));
	await waitFor(() => expect(ondone).toHaveBeenCalledTimes(1));
	expect(changes).toEqual([]);
});

test('a list that is fetched is not allowed by default, because it can name other hosts later', async () => {
	gateway(account(), { count: 1, hosts: ['10.255.255.1'] });
	const ondone = vi.fn();
	render(AddSource, { ondone });
	await addAddress();
	expect((await screen.findByRole<HTMLInputElement>('checkbox')).checked).toBe(false);
	await fireEvent.click(screen.getByRole('button', { name: 'Continue' }));
	await waitFor(() => expect(ondone).toHaveBeenCalledTimes(1));
	expect(changes).toEqual([]);
});

test('without such hosts nothing is asked', async () => {
	for (const [imported, local] of [
		[account({ uploaded_file: 'a.m3u' }), { count: 0, hosts: [] }],
		[account({ uploaded_file: 'a.m3u', allowed_networks: 'private' }), { count: 1, hosts: ['10.0.0.1'] }],
		[account({ uploaded_file: 'a.m3u' }), null],
	] as const) {
		gateway(imported, local && { ...local, hosts: [...local.hosts] });
		const ondone = vi.fn();
		const { unmount } = render(AddSource, { ondone });
		await addFile();
		await waitFor(() => expect(ondone).toHaveBeenCalledTimes(1));
		expect(changes).toEqual([]);
		unmount();
	}
});
