import { expect, test } from 'vitest';
import type { ChannelStats } from '$lib/live';
import { deviceOf } from './device';
import {
	countsByUser,
	fileViewers,
	liveViewers,
	ofUser,
	ordered,
	RateMeter,
	selected,
	type Viewer,
	type Watched,
} from './viewers';

test.each([
	['VLC/3.0.20 LibVLC/3.0.20', 'VLC 3.0.20'],
	['Kodi/20.2 (Windows NT 10.0; Win64; x64) App_Bitness/64 Version/20.2', 'Kodi 20, Windows'],
	['TiviMate/4.7.0 (Android 11)', 'TiviMate, Android'],
	['Lavf/60.16.100', 'FFmpeg'],
	[
		'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:130.0) Gecko/20100101 Firefox/130.0',
		'Firefox 130, Windows',
	],
	[
		'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15',
		'Safari 17, macOS',
	],
	[
		'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0',
		'Edge 126, Linux',
	],
	['AppleCoreMedia/1.0.0.21K69 (Apple TV; U; CPU OS 17_1 like Mac OS X)', 'Apple player, Apple TV'],
	['Player-anna/1', 'Player-anna 1'],
	['My own box', 'My own box'],
	['<b>', '<b>'],
	['', ''],
])('the device of %s', (agent, device) => expect(deviceOf(agent)).toBe(device));

const client = (client_id: string, username: string, more: object = {}) => ({
	client_id,
	username,
	ip_address: '192.0.2.7',
	user_agent: 'VLC/3.0.20',
	output_profile: null,
	output_format: 'mpegts',
	duration: 60,
	bytes_sent: 1000,
	bitrate_kbps: 4000,
	missed_bytes: 0,
	misses: 0,
	...more,
});

const stats = {
	sequence: 1,
	timestamp: '2026-01-02T04:00:00Z',
	totals: null,
	channels: [
		{
			channel_id: 'u1',
			channel_name: 'News',
			channel_number: '10',
			state: 'playing',
			uptime: 1,
			client_count: 2,
			clients: [client('1', 'anna'), client('2', '', { ip_address: '192.0.2.10', node: 'attic' })],
		},
		{
			channel_id: 'u2',
			channel_name: 'Sport',
			channel_number: '2',
			state: 'playing',
			uptime: 1,
			client_count: 1,
			clients: [client('3', 'Anna', { bitrate_kbps: null, missed_bytes: 77 })],
		},
		{
			channel_id: 'u3',
			channel_name: 'Empty',
			channel_number: '',
			state: 'idle',
			uptime: 1,
			client_count: 0,
		},
	],
} as ChannelStats;

const file = (client_id: string, duration: number, bytes_sent: number): Watched =>
	({
		client_id,
		node: null,
		client_ip: '192.0.2.9',
		user_agent: 'Lavf/60',
		username: 'berta',
		connected_at: '2026-01-02T04:00:00Z',
		duration,
		requests: 1,
		bytes_sent,
		bytes_received: 0,
		upstream_connections: 1,
		uses_slot: true,
		position_bytes: 0,
		content_length: null,
		m3u_profile: null,
		uuid: 'm1',
		name: 'Metropolis',
	}) as Watched;

test('viewers of channels and of files are one list with ids of their own', () => {
	const all = [...liveViewers(stats), ...fileViewers('title', [file('1', 10, 0)], new Map())];
	expect(all.map((it) => [it.user, it.name, it.kind])).toEqual([
		['anna', 'News', 'live'],
		['', 'News', 'live'],
		['Anna', 'Sport', 'live'],
		['berta', 'Metropolis', 'title'],
	]);
	expect(new Set(all.map((it) => it.id)).size).toBe(4);
	expect(liveViewers(null)).toEqual([]);
});

const names = (list: Viewer[]) => list.map((it) => it.client);
const programme = (uuid: string): string => (uuid === 'u1' ? 'Weather' : '');

test.each([
	[{}, ['1', '2', '3']],
	[{ search: 'anna' }, ['1', '3']],
	[{ search: 'ANNA sport' }, ['3']],
	[{ search: 'weather' }, ['1', '2']],
	[{ search: '192.0.2.10' }, ['2']],
	[{ node: 'attic' }, ['2']],
	[{ format: 'hls-ts' }, []],
	[{ kind: 'title' }, []],
])('the viewers that %j selects', (filter, ids) =>
	expect(
		names(selected(liveViewers(stats), { search: '', kind: '', format: '', node: '', ...filter }, programme)),
	).toEqual(ids),
);

test.each([
	['user', ['2', '1', '3']],
	['-lost', ['3', '1', '2']],
	['rate', ['3', '1', '2']],
	['name', ['1', '2', '3']],
	['no-such-order', ['2', '1', '3']],
	[null, ['2', '1', '3']],
])('the order %s', (ordering, ids) => expect(names(ordered(liveViewers(stats), ordering))).toEqual(ids));

test('the viewers of a user are found regardless of case, and callers without a login are nobody', () => {
	expect(names(ofUser(liveViewers(stats), 'ANNA'))).toEqual(['1', '3']);
	expect(ofUser(liveViewers(stats), '')).toEqual([]);
	expect([...countsByUser(liveViewers(stats))]).toEqual([['anna', 2]]);
});

test('the rate of a file is what was sent between two reports', () => {
	const meter = new RateMeter();
	const at = (seconds: number, sent: number) => [{ id: 'a', seconds, sent }];
	expect(meter.measure(at(1, 0)).get('a')).toBeUndefined();
	expect(meter.measure(at(3, 1_000_000)).get('a')).toBe(4000);
	expect(meter.measure(at(3, 1_000_000)).get('a'), 'the same report again').toBe(4000);
	expect(meter.measure(at(4, 1_000_000)).get('a')).toBe(0);
	expect(meter.measure([]).size).toBe(0);
	expect(meter.measure(at(9, 5)).get('a'), 'a connection that was away').toBeUndefined();
});
