import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { allOrdered, orderedGroups, unorderedGroups, withOrder } from './groupOrder';
import GroupOrder from './GroupOrder.svelte';
import type { ChannelGroup } from './groups.svelte';

const group = (id: number, name: string, position: number | null, channel_count = 1): ChannelGroup => ({
	id,
	name,
	position,
	channel_count,
	m3u_account_count: 0,
	m3u_accounts: [],
	is_adult: false,
});
const GROUPS = [
	group(1, 'News', 2),
	group(2, 'Sport', 1),
	group(3, 'Films', null),
	group(4, 'Empty', null, 0),
	group(5, 'Kids', null),
];
const names = (groups: readonly ChannelGroup[]) => groups.map((it) => it.name);

test('groups with a position come first, then those that have channels', () => {
	expect(names(orderedGroups(GROUPS))).toEqual(['Sport', 'News']);
	expect(names(unorderedGroups(GROUPS))).toEqual(['Films', 'Kids']);
	expect(names(allOrdered(GROUPS))).toEqual(['Sport', 'News', 'Films', 'Kids']);
	const next = withOrder(GROUPS, [5, 1]);
	expect(names(orderedGroups(next))).toEqual(['Kids', 'News']);
	expect(names(unorderedGroups(next))).toEqual(['Sport', 'Films']);
	expect(names(orderedGroups([group(1, 'b', 1), group(2, 'a', 1)]))).toEqual(['a', 'b']);
});

/** The orders that the page sent. */
let orders: number[][];
let stored: ChannelGroup[];
/** Ends the request that waits, if requests wait. */
let release: (() => void) | null;
let waits: boolean;
let refused: string | null;

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	[orders, stored, release, waits, refused] = [[], GROUPS, null, false, null];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		if (request.method === 'GET') return Response.json({ count: stored.length, results: stored });
		const { group_ids } = (await request.json()) as { group_ids: number[] };
		orders.push(group_ids);
		if (waits) await new Promise<void>((done) => (release = done));
		if (refused) return Response.json({ detail: refused }, { status: 400 });
		stored = withOrder(stored, group_ids);
		return Response.json({ ordered_count: group_ids.length, changed_count: 1 });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const shown = () => screen.queryAllByRole('listitem').map((it) => it.querySelector('bdi')?.textContent);
const click = (name: string) => fireEvent.click(screen.getByRole('button', { name }));

test('a group moves at once, and changes while a request runs are sent together after it', async () => {
	render(GroupOrder);
	await screen.findByText('Sport');
	waits = true;
	await click('Add all groups');
	expect(shown()).toEqual(['Sport', 'News', 'Films', 'Kids']);
	await click('Move Kids up');
	await click('Move News up');
	expect(shown()).toEqual(['News', 'Sport', 'Kids', 'Films']);
	await waitFor(() => expect(release).not.toBeNull());
	waits = false;
	release?.();
	await waitFor(() =>
		expect(orders).toEqual([
			[2, 1, 3, 5],
			[1, 2, 5, 3],
		]),
	);
	await waitFor(() => expect(names(orderedGroups(stored))).toEqual(['News', 'Sport', 'Kids', 'Films']));
	expect(shown()).toEqual(['News', 'Sport', 'Kids', 'Films']);
});

test('a refused order says why, and the stored one is shown again', async () => {
	render(GroupOrder);
	await screen.findByText('Sport');
	refused = 'Name each group once.';
	await click('Move News up');
	await screen.findByText('Name each group once.');
	await waitFor(() => expect(shown()).toEqual(['Sport', 'News']));
});
