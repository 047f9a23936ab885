import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { live, type ChannelStats, type LiveChannel } from '$lib/live';
import { router } from '$lib/router';
import Now from './Now.svelte';
import { Rates } from './rates.svelte';
import { initialsOf, pictureOf } from './view';

const UUID = '11111111-1111-4111-8111-111111111111';
const CHANNEL: LiveChannel = {
	channel_id: UUID,
	channel_name: 'News <b>',
	channel_number: '4.1',
	state: 'playing',
	uptime: 60,
	client_count: 2,
	stream_id: 22,
	resolution: '1280x720',
	source_fps: 50,
	video_codec: 'h264',
	audio_codec: 'aac',
	bitrate_kbps: 4800,
	failovers: 1,
	clients: [
		{ client_id: '1', username: 'anna.berg' },
		{ client_id: '2', username: '' },
	] as LiveChannel['clients'],
};
const stats = (...channels: LiveChannel[]): ChannelStats => ({
	sequence: 1,
	timestamp: '2026-01-02T04:00:00Z',
	channels,
	totals: { client_count: 2, connections_in_use: 1, bitrate_in_kbps: 4800, bitrate_out_kbps: 9600 },
});
const PROGRAMME = {
	channel_uuid: UUID,
	display_title: 'Weather',
	start_time: new Date(Date.now() - 600_000).toISOString(),
	end_time: new Date(Date.now() + 1_800_000).toISOString(),
	next: { display_title: 'Film', start_time: new Date(Date.now() + 1_800_000).toISOString() },
};

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	history.replaceState(null, '', '/now');
	router.read();
	localStorage.clear();
	live.stats = stats(CHANNEL);
	vi.stubGlobal('fetch', async (request: Request) => {
		const answers: Record<string, unknown> = {
			'/api/epg/current-programs/': [PROGRAMME],
			'/api/channels/channels/by-uuids/': [{ id: 7, uuid: UUID, logo_id: 5, streams: [21, 22, 23] }],
			'/proxy/ts/status': {
				channels: [{ channel_id: UUID, stream_id: 22, stream_name: 'News HD', account_name: 'Home' }],
			},
			'/proxy/vod/stats': { vod_connections: [] },
			'/proxy/catchup/stats': { timeshift_sessions: [] },
			'/api/m3u/slots/': { profiles: [], server_groups: [] },
			'/api/demo/sources/': { count: 0, results: [] },
		};
		return Response.json(answers[new URL(request.url).pathname] ?? {});
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
	live.stats = null;
});

test('a card says what plays, from where, for whom, and what comes next', async () => {
	const { container } = render(Now);
	await screen.findByText('Weather');
	await screen.findByText('stream 2 of 3');
	for (const text of [
		'4.1',
		'News <b>',
		'News HD',
		'Home',
		'4.8 Mbit/s',
		'1280 × 720 · 50 fps · h264 · aac',
		'AB',
	])
		expect(screen.queryAllByText(text).length, text).toBeGreaterThan(0);
	expect(screen.getByText(/Film$/)).toBeTruthy();
	expect(screen.getByRole('img', { name: 'anna.berg and no login' })).toBeTruthy();
	const progress = screen.getByRole<HTMLProgressElement>('progressbar', { name: 'Progress of Weather' });
	expect(progress.value).toBeCloseTo(0.25, 1);
	expect(container.querySelector('img')?.getAttribute('src')).toBe('/api/channels/logos/5/cache/');
});

test('a list is chosen and remembered, and the address can ask for the other form', async () => {
	const { container, unmount } = render(Now);
	const isCards = (it: Element) => it.querySelector('table.cards') !== null;
	expect(isCards(container)).toBe(true);
	await fireEvent.click(screen.getByRole('button', { name: 'Show a list' }));
	expect(isCards(container)).toBe(false);
	expect(screen.getByRole('button', { name: 'Show a list', pressed: true })).toBeTruthy();
	unmount();
	const again = render(Now);
	expect(isCards(again.container), 'remembered').toBe(false);
	again.unmount();
	history.replaceState(null, '', '/now?view=cards');
	router.read();
	expect(isCards(render(Now).container)).toBe(true);
});

test('users who are no admins see state, name, programme and count', async () => {
	session.user = { id: 2, username: 'anna', user_level: 1, is_superuser: false } as typeof session.user;
	const { channel_id, channel_name, channel_number, state, uptime, client_count } = CHANNEL;
	live.stats = stats({ channel_id, channel_name, channel_number, state, uptime, client_count });
	const { container } = render(Now);
	await screen.findByText('Weather');
	const cells = [...container.querySelectorAll('tr[data-channel] > *')];
	expect(cells).toHaveLength(3);
	expect(cells[2]?.textContent?.trim()).toBe('2');
});

test('rates are kept every five seconds, with a mark at each failover, as long as a channel plays', () => {
	const rates = new Rates();
	const at = (seconds: number, failovers: number, ...channels: LiveChannel[]): void =>
		rates.take({
			...stats(...channels.map((it) => ({ ...it, failovers, bitrate_kbps: seconds }))),
			timestamp: new Date(1_000_000 + seconds * 1000).toISOString(),
		});
	for (let second = 0; second <= 10; second += 1) at(second, second >= 7 ? 2 : 1, CHANNEL);
	expect(rates.of(UUID)?.samples.map((it) => it.value)).toEqual([0, 5, 7]);
	expect(rates.of(UUID)?.marks).toEqual([1_007_000]);
	at(11, 2);
	expect(rates.of(UUID)).toBeUndefined();
});

test.each([
	['anna', 'AN'],
	['anna.berg', 'AB'],
	['Anna Maria Berg', 'AM'],
	['é', 'É'],
	['', ''],
])('the initials of “%s”', (name, initials) => expect(initialsOf(name)).toBe(initials));

test('only what is known of a picture is said', () => {
	expect(
		pictureOf({ resolution: null, source_fps: null, video_codec: null, audio_codec: 'mp3' }, String),
	).toBe('mp3');
	expect(pictureOf({}, String)).toBe('');
});
