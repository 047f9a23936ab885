import { cleanup, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import History from './History.svelte';

let asked: URL[] = [];

beforeEach(() => {
	asked = [];
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	vi.stubGlobal('fetch', async (request: Request) => {
		const url = new URL(request.url);
		asked.push(url);
		if (url.pathname.endsWith('/streams/')) return Response.json([{ id: 9, name: 'News A' }]);
		const series = {
			failovers: [0, 2],
			losses: [0, 3],
			playing_seconds: [300, 150],
			failing_seconds: [0, 150],
		};
		const scope = url.searchParams.get('scope');
		return Response.json({
			scope,
			id: 7,
			name: 'News',
			node: 'attic',
			is_kept: scope !== 'user',
			start: '2031-05-04T07:00:00Z',
			step_seconds: 300,
			points: 2,
			series,
		});
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

function open(path: string): void {
	history.replaceState(null, '', path);
	router.read();
	render(History);
}

test('the history of a channel tells in words what its strips show, and names the node', async () => {
	open('/history?scope=channel&id=7&range=6h');
	expect(
		await screen.findByRole('img', { name: 'Failovers: 2 failovers, 3 failures of streams.' }),
	).toBeTruthy();
	expect(screen.getByRole('img', { name: 'Time playing: played 75 % of the time in use.' })).toBeTruthy();
	expect(screen.getByText(/the node attic/)).toBeTruthy();
	const query = asked.find((it) => it.pathname === '/api/core/history/')?.searchParams;
	expect([query?.get('scope'), query?.get('id')]).toEqual(['channel', '7']);
	const [from, until] = ['from', 'until'].map((it) => Date.parse(query?.get(it) ?? ''));
	expect((until ?? 0) - (from ?? 0)).toBe(6 * 3_600_000);
});

test('a channel leads to the history of each of its streams, which has its time playing', async () => {
	open('/history?scope=channel&id=7&range=6h');
	const link = await screen.findByRole('link', { name: 'News A' });
	expect(link.getAttribute('href')).toBe('/history?scope=stream&id=9&range=6h');
	cleanup();
	open('/history?scope=stream&id=9');
	expect(await screen.findByRole('img', { name: /Time playing: played 75/ })).toBeTruthy();
	expect(screen.queryByRole('link', { name: 'News A' })).toBeNull();
});

test('a history of users that is not kept leads to its setting', async () => {
	open('/history?scope=user&id=7');
	const link = await screen.findByRole('link', { name: 'Open the settings' });
	expect(link.getAttribute('href')).toBe('/settings?q=history');
});

test('nothing is asked before a channel is chosen', async () => {
	open('/history?scope=channel');
	expect(await screen.findByText('Choose a channel to see its history.')).toBeTruthy();
	expect(asked).toEqual([]);
});
