import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import Recordings from './Recordings.svelte';

const recording = (id: number, title: string, status = 'completed') => ({
	id,
	title,
	status,
	artwork: null,
	channel_name: 'One',
	custom_properties: {},
	start_time: '2031-05-04T20:15:00Z',
	end_time: '2031-05-04T21:15:00Z',
	started_at: null,
	ended_at: '2020-05-04T21:15:00Z',
	file_size: 1024,
	file_url: '/file',
	is_available: true,
	forecast: null,
	padding_before: 0,
	padding_after: 0,
	updated_at: '',
});

function go(path: string): void {
	history.replaceState(null, '', path);
	router.read();
}

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 1, is_superuser: false } as typeof session.user;
	vi.stubGlobal('fetch', () => {
		const results = [recording(1, 'News'), recording(2, 'Heat'), recording(3, 'news', 'failed')];
		return Promise.resolve(Response.json({ count: 3, next: null, previous: null, results }));
	});
	go('/recordings?show=done');
});
afterEach(() => {
	vi.unstubAllGlobals();
	localStorage.clear();
	session.user = null;
	go('/');
});

test('recordings of a series are one card that opens them, and a list remains', async () => {
	render(Recordings, {});
	const series = await screen.findByRole('link', { name: /News.*2 recordings/ });
	expect(series.textContent).toContain('Failed');
	expect(screen.getByRole('link', { name: /Heat/ }).getAttribute('href')).toBe('/recordings/2?show=done');
	go(series.getAttribute('href') ?? '');
	await screen.findByRole('heading', { name: 'News' });
	expect(screen.getAllByRole('link', { name: /news/i }).map((it) => it.getAttribute('href'))).toContain(
		'/recordings/3?show=done&series=News',
	);
	expect(screen.queryByRole('link', { name: /Heat/ })).toBeNull();
	await fireEvent.click(screen.getByRole('button', { name: 'As a list' }));
	await screen.findByRole('table', { name: 'Recordings' });
	await waitFor(() => expect(router.query.has('series')).toBe(false));
});
