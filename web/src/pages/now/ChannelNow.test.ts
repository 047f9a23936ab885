import { render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { live, type ClientStats, type LiveChannel } from '$lib/live';
import ChannelNow from './ChannelNow.svelte';

const UUID = '11111111-1111-4111-8111-111111111111';
const CLIENT = { client_id: 'a', username: 'anna', ip_address: '192.0.2.1', user_agent: 'Player', misses: 0 };

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	vi.stubGlobal('fetch', async () => Response.json({}, { status: 404 }));
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
	live.stats = null;
});

function shows(client: Partial<ClientStats>, more: Partial<LiveChannel> = {}): void {
	const clients = [{ ...CLIENT, duration: 1, bytes_sent: 1, ...client }];
	const channel = {
		channel_id: UUID,
		channel_name: 'News',
		state: 'playing',
		client_count: 1,
		clients,
		...more,
	};
	live.stats = {
		sequence: 1,
		timestamp: '2026-01-02T04:00:00Z',
		channels: [channel as LiveChannel],
		totals: null,
	};
	render(ChannelNow, { uuid: UUID });
}

test('each viewer has a format, and segments have their latency', async () => {
	const segmenter = {
		container: 'fmp4',
		output_profile: null,
		viewers: 1,
		target_duration: 4,
		newest_segment: 7,
		segments: 6,
		bytes: 24_000_000,
		latency: 1.5,
		codecs: 'avc1.64001f,mp4a.40.2',
		left_out: ['DVB subtitles <b>'],
	};
	shows({ output_format: 'll-hls' }, { segmenters: [segmenter] });
	await screen.findByText('HLS with low latency');
	for (const text of ['1.5 s', '4 s', 'fMP4', 'left out: DVB subtitles <b>'])
		expect(screen.getByText(text)).toBeTruthy();
});

test('a gateway that reports no formats has no column for them', async () => {
	shows({});
	await screen.findByText('192.0.2.1');
	expect(screen.queryByRole('columnheader', { name: 'Format' })).toBeNull();
	expect(screen.queryByRole('heading', { name: 'Segments' })).toBeNull();
});

test('what a source has lost is said with its reason', async () => {
	shows({ output_format: 'rtp' }, { segments_read: 1200, segments_skipped: 2, lost_datagrams: 3 });
	await screen.findByText('RTP output');
	expect(screen.getByText(/1,200 segments read, 2 skipped/)).toBeTruthy();
	expect(screen.getByText('3 datagrams lost')).toBeTruthy();
	expect(screen.getByText(/receive buffer/)).toBeTruthy();
});

test('a source without segments and datagrams has no figures of them', async () => {
	shows({}, { segments_read: 0, segments_skipped: 0, lost_datagrams: 0 });
	await screen.findByText('192.0.2.1');
	expect(screen.queryByText(/segment|datagram/)).toBeNull();
});

test('the title of a radio station is shown as text', async () => {
	shows({}, { title: 'Artist - <b>Song</b>' });
	await screen.findByText('Artist - <b>Song</b>');
	expect(screen.getByText(/On air/)).toBeTruthy();
});

test('a channel without a title has no line for it', async () => {
	shows({}, { title: null });
	await screen.findByText('192.0.2.1');
	expect(screen.queryByText(/On air/)).toBeNull();
});

test('streams of one name are offered with their accounts', async () => {
	const streams = [1, 2, 3, 4, 5].map((id) => ({
		id,
		name: 'News',
		m3u_account: [1, 2, 3, 3, null][id - 1],
		health: null,
	}));
	const accounts = ['Home', 'Abroad', 'Attic'].map((name, n) => ({ id: n + 1, name }));
	const answers: Record<string, unknown> = {
		'/api/channels/channels/by-uuids/': [{ id: 7 }],
		'/api/channels/channels/7/streams/': streams,
		'/api/m3u/accounts/': { count: 3, results: accounts },
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const answer = answers[new URL(request.url).pathname];
		return Response.json(answer ?? {}, { status: answer ? 200 : 404 });
	});
	shows({}, { stream_id: 1 });
	await screen.findAllByText('Abroad');
	const entries = screen.getAllByRole('menuitem', { hidden: true });
	expect(entries.map((it) => it.textContent?.trim())).toEqual([
		'News Abroad',
		'News Attic',
		'News Attic',
		'News added by hand',
	]);
});
