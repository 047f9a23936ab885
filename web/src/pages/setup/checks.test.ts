import { expect, it } from 'vitest';
import { checksOf, type Timeline } from './checks';

type Entry = Timeline['runs'][number]['entries'][number];
const entry = (event: Entry['event'], more: Partial<Entry> = {}): Entry => ({
	timestamp: '',
	node: null,
	event,
	state: 'opening',
	cause: null,
	detail: '',
	detail_code: null,
	stream_id: 1,
	stream_name: 'News',
	account_name: 'Home',
	m3u_profile_id: 1,
	upstream_status: null,
	gap_ms: null,
	bytes_in: 0,
	...more,
});
const timeline = (...entries: Entry[]): Timeline => ({
	channel_id: '',
	channel_name: 'News',
	count: 1,
	runs: [{ started_at: '', ended_at: null, dropped: 0, nodes: [], entries }],
	missing_nodes: [],
});
const states = (checks: ReturnType<typeof checksOf>) => checks.map((it) => it.state).join(' ');

it('nothing is known before the first entry', () => {
	expect(states(checksOf(null, null, ''))).toBe('waiting waiting waiting waiting');
	expect(states(checksOf(timeline(entry('asked_for_slot')), null, ''))).toBe(
		'waiting waiting waiting waiting',
	);
});

it('a full account fails the first check', () => {
	const checks = checksOf(timeline(entry('no_slot', { detail: 'account "Home" is full' })), null, '');
	expect(states(checks)).toBe('bad waiting waiting waiting');
	expect(checks[0]?.detail).toBe('account "Home" is full');
});

it('a refused connection and a stream without data are told apart', () => {
	const refused = timeline(entry('opening'), entry('lost', { cause: 'http_status', detail: 'status 404' }));
	expect(states(checksOf(refused, null, ''))).toBe('good bad waiting waiting');
	const silent = timeline(entry('opening'), entry('lost', { cause: 'stall', bytes_in: 900 }));
	expect(states(checksOf(silent, null, ''))).toBe('good good bad waiting');
	expect(checksOf(silent, null, '')[2]?.detail).toBe('stall');
});

it('a stream that plays and a codec that the browser lacks', () => {
	const playing = timeline(entry('opening'), entry('started', { state: 'playing' }));
	expect(states(checksOf(playing, null, ''))).toBe('good good good waiting');
	expect(states(checksOf(playing, true, ''))).toBe('good good good good');
	const checks = checksOf(playing, false, 'MPEG-2 video');
	expect(checks[3]).toEqual({ name: 'picture', state: 'bad', detail: 'MPEG-2 video' });
});
