import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import Question from '$lib/ui/Question.svelte';
import { confirmFor, found } from './model';
import Permissions from './Permissions.svelte';

const PERMISSIONS = [
	{ id: 1, codename: 'view_channel', name: 'Can view channel', effect: 'Reads channels.' },
	{ id: 2, codename: 'add_recording', name: 'Can add recording', effect: 'Schedules recordings.' },
	{ id: 3, codename: 'view_logo', name: 'Can view logo', effect: null },
];
let users = [] as { id: number; username: string; permissions: string[] }[];
let sent: number[][] = [];

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	sent = [];
	// Dialogs of this environment do not open by themselves.
	HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
		this.open = true;
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname } = new URL(request.url);
		if (pathname.endsWith('/unconfirmed/')) return Response.json(users);
		if (pathname.endsWith('/confirm/')) {
			const { user_ids } = (await request.json()) as { user_ids: number[] };
			sent.push(user_ids);
			users = users.filter((it) => !user_ids.includes(it.id));
			return Response.json({ confirmed_count: user_ids.length });
		}
		return Response.json({ count: 3, next: null, previous: null, results: PERMISSIONS });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

test('what waits is shown with its effect, and has it after a confirmation', async () => {
	users = [
		{ id: 7, username: 'anna', permissions: ['view_channel'] },
		{ id: 8, username: '<b>kid</b>', permissions: ['view_channel', 'add_recording'] },
	];
	render(Question);
	render(Permissions);
	await screen.findByText('Reads channels.');
	expect(screen.getByText('Schedules recordings.')).toBeTruthy();
	expect(screen.queryByText('Can view logo')).toBeNull();
	await fireEvent.click(screen.getByRole('button', { name: 'Confirm for all 2' }));
	await screen.findByText('Confirm the permissions of 2 users?');
	const buttons = screen.getAllByRole('button', { name: 'Confirm', hidden: true });
	await fireEvent.click(buttons.at(-1)!);
	await screen.findByText('No permission waits for you');
	expect(sent).toEqual([[7, 8]]);
});

test('without permissions to confirm the page says so', async () => {
	users = [];
	render(Permissions);
	await screen.findByText('No permission waits for you');
	expect(screen.queryByRole('button', { name: /Confirm/ })).toBeNull();
});

test('many users are confirmed in requests that the interface takes', async () => {
	const ids = Array.from({ length: 2_001 }, (_, n) => n + 1);
	expect(await confirmFor(ids)).toBe(2_001);
	await waitFor(() => expect(sent.map((it) => it.length)).toEqual([1_000, 1_000, 1]));
	expect(sent.flat()).toEqual(ids);
});

test('users are found by a part of their name', () => {
	const all = ['Anna', 'hanna', 'Bert'].map((username, id) => ({ id, username, permissions: [] }));
	expect(found(all, ' ANNA ').map((it) => it.username)).toEqual(['Anna', 'hanna']);
	expect(found(all, '')).toHaveLength(3);
});
