import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { live, type ChannelStats, type ClientStats } from '$lib/live';
import { router } from '$lib/router';
import ViewerTable from './ViewerTable.svelte';
import { liveViewers } from './viewers';
import Viewers from './Viewers.svelte';

const client = (id: string, username: string): ClientStats => ({
	client_id: id,
	username,
	ip_address: `192.0.2.${id}`,
	user_agent: `Player-${username}/1`,
	output_profile: null,
	output_format: 'mpegts',
	duration: 60,
	bytes_sent: 1,
	bitrate_kbps: 4000,
	missed_bytes: 0,
	misses: 0,
});
const channel = (n: number, name: string, clients: ClientStats[]) => ({
	channel_id: `00000000-0000-4000-8000-00000000000${n}`,
	channel_name: name,
	channel_number: String(n),
	state: 'playing',
	uptime: 1,
	client_count: clients.length,
	clients,
});
const stats = (...channels: ReturnType<typeof channel>[]): ChannelStats => ({
	sequence: 1,
	timestamp: '2026-01-02T04:00:00Z',
	channels,
	totals: null,
});
let requests: [path: string, body: string][] = [];

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	requests = [];
	history.replaceState(null, '', '/now/viewers');
	router.read();
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname } = new URL(request.url);
		requests.push([pathname, await request.clone().text()]);
		const answers: Record<string, unknown> = {
			'/proxy/vod/stats': { vod_connections: [] },
			'/proxy/catchup/stats': { timeshift_sessions: [] },
			'/api/epg/current-programs/': [
				{
					channel_uuid: channel(1, '', []).channel_id,
					display_title: 'Weather <b>',
					start_time: '2026-01-02T03:00:00Z',
					end_time: '2999-01-02T05:00:00Z',
				},
			],
		};
		return Response.json(answers[pathname] ?? { message: 'Stopped' });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
	live.stats = null;
});

const rowsOf = () =>
	screen
		.getAllByRole('row')
		.slice(1)
		.map((it) => it.textContent?.replace(/\s+/g, ' ').trim() ?? '');

test('viewers of all channels are in one list with channel and programme', async () => {
	live.stats = stats(
		channel(1, 'News', [client('1', 'anna'), client('2', 'berta')]),
		channel(2, 'Sport', [client('3', 'clara')]),
	);
	render(Viewers);
	await screen.findAllByText('Weather <b>');
	const rows = rowsOf();
	expect(rows).toHaveLength(3);
	for (const [n, parts] of [
		['anna', 'News', 'Player-anna 1', '192.0.2.1'],
		['berta', 'News'],
		['clara', 'Sport'],
	].entries())
		for (const part of parts) expect(rows[n]).toContain(part);
	expect(screen.getByText(/3 viewers/).textContent).toContain('12 Mbit/s');
	await fireEvent.click(screen.getByRole('button', { name: 'Disconnect berta' }));
	await vi.waitFor(() =>
		expect(requests.map(([path]) => path)).toContain(
			`/proxy/ts/stop_client/${channel(1, '', []).channel_id}`,
		),
	);
	expect(requests.at(-1)?.[1]).toBe('{"client_id":"2"}');
});

test('a search in the address selects viewers, and a list that it empties says so', async () => {
	history.replaceState(null, '', '/now/viewers?q=sport');
	router.read();
	live.stats = stats(channel(1, 'News', [client('1', 'anna')]), channel(2, 'Sport', [client('3', 'clara')]));
	render(Viewers);
	await screen.findByText(/1 of 2 viewers/);
	expect(rowsOf()).toHaveLength(1);
	live.stats = stats(channel(1, 'News', [client('1', 'anna')]));
	await screen.findByText('No viewer matches');
	live.stats = stats();
	await screen.findByText('Nobody watches');
});

test('the page of a user names channels, that of a channel names users', async () => {
	const viewers = liveViewers(stats(channel(1, 'News', [client('1', 'anna')])));
	const { rerender } = render(ViewerTable, {
		viewers,
		labelledby: 'a',
		hides: 'user',
		programme: () => 'Weather',
	});
	expect(screen.getByRole('link', { name: 'News' }).getAttribute('href')).toBe(`/now/${viewers[0]?.uuid}`);
	expect(screen.getByText('Weather')).toBeTruthy();
	expect(screen.queryByText('anna')).toBeNull();
	await rerender({ viewers, labelledby: 'a', hides: 'name' });
	expect(screen.getByText('anna')).toBeTruthy();
	expect(screen.queryByText('News')).toBeNull();
});
