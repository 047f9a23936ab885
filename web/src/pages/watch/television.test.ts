import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import { findNumber, type ChannelRow } from './channels.svelte';
import { actionOf, takesKey } from './keys';
import { aheadOf, RateMeter } from './measure';
import { COMMIT_MS, NumberEntry } from './numberEntry.svelte';
import { chooseSound, chooseSubtitle, languageName, soundsOf, subtitlesOf, toggleSubtitles } from './tracks';
import Watch from './Watch.svelte';

/** The sounds that the viewer has chosen. */
const chosen = vi.hoisted(() => [] as string[]);
vi.mock('./player.svelte', () => ({
	playableFormats: () => ['mpegts'],
	LivePlayer: class {
		state = 'playing';
		reason = null;
		sounds = [
			{ id: '256', name: 'German', isOn: true },
			{ id: '257', name: '', isOn: false },
		];
		chooseSound(id: string): void {
			chosen.push(id);
		}
		format = 'mpegts';
		start(): void {}
		end(): void {}
		measured() {
			return { kbps: 4200, codecs: 'H.264, AAC' };
		}
	},
}));

const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const channel = (id: number, number: number | null): ChannelRow => ({
	id,
	uuid: uuidOf(id),
	name: `Channel ${id}`,
	channel_number: number as number,
	logo_id: null as unknown as number,
});

const keyOf = (key: string, more = {}) => ({
	key,
	ctrlKey: false,
	metaKey: false,
	altKey: false,
	defaultPrevented: false,
	...more,
});

test.each([
	['ArrowUp', {}, 'before'],
	['ArrowDown', {}, 'after'],
	['7', {}, 'type 7'],
	['F', {}, 'fill'],
	['m', {}, 'mute'],
	['x', {}, null],
	['f', { ctrlKey: true }, null],
	['ArrowUp', { defaultPrevented: true }, null],
	['F5', {}, null],
] as const)('the key %s with %j does %s', (key, more, action) =>
	expect(actionOf(keyOf(key, more), true)).toBe(action),
);

test('shortcuts of one key can be switched off, others stay', () => {
	expect(['7', 'f', ' ', '.'].map((it) => actionOf(keyOf(it), false))).toEqual([null, null, null, null]);
	expect(actionOf(keyOf('ArrowDown'), false)).toBe('after');
});

test.each([
	['<input>', 'input', '5', true],
	['<button>a</button>', 'button', ' ', true],
	['<button>a</button>', 'button', '5', false],
	['<a href="#x">a</a>', 'a', 'Enter', true],
	['<p>a</p>', 'p', 'ArrowDown', false],
	['<dialog open></dialog><p>a</p>', 'p', '5', true],
])('in %s the %s takes %s itself: %s', (html, selector, key, takes) => {
	document.body.innerHTML = html;
	expect(takesKey(document.querySelector(selector), key)).toBe(takes);
	document.body.innerHTML = '';
});

describe('a typed number', () => {
	beforeEach(() => void vi.useFakeTimers());
	afterEach(() => void vi.useRealTimers());

	it('chooses its channel after a pause or with Enter', async () => {
		const choose = vi.fn(async (number: number) => number === 42);
		const entry = new NumberEntry(choose);
		for (const it of ['.', '4', '2']) entry.type(it);
		expect(entry.typed).toBe('42');
		await vi.advanceTimersByTimeAsync(COMMIT_MS - 1);
		expect(choose).not.toHaveBeenCalled();
		await vi.advanceTimersByTimeAsync(1);
		expect(choose).toHaveBeenCalledWith(42);
		expect([entry.typed, entry.unknown]).toEqual(['', null]);

		for (const it of ['4', '.', '.', '1']) entry.type(it);
		expect(await entry.commit()).toBe(true);
		expect([choose.mock.lastCall, entry.unknown]).toEqual([[4.1], '4.1']);
		await vi.advanceTimersByTimeAsync(3_000);
		expect(entry.unknown).toBe(null);
		expect(await entry.commit()).toBe(false);
	});

	it('is mended with Backspace, and has an end', () => {
		const entry = new NumberEntry(async () => true);
		for (let n = 0; n < 20; n += 1) entry.type('1');
		expect(entry.typed).toHaveLength(8);
		expect([entry.erase(), entry.typed.length]).toEqual([true, 7]);
		entry.end();
		expect(new NumberEntry(async () => true).erase()).toBe(false);
	});
});

test.each([
	[1, 1],
	[250.5, 1],
	[4_000, 6],
	[4, null],
	[99_999, null],
])('channel %d of 500 pages is found with few requests', async (number, requests) => {
	const all = Array.from({ length: 50_000 }, (_, n) =>
		channel(n, n < 49_000 ? (n === 249 ? 250.5 : n * 2 + 1) : null),
	);
	all.sort((a, b) => (a.channel_number ?? Infinity) - (b.channel_number ?? Infinity));
	const read = vi.fn(async (page: number, size: number) => ({
		count: all.length,
		results: all.slice((page - 1) * size, page * size),
	}));
	const wanted = requests === null ? null : all.find((it) => it.channel_number === number);
	expect((await findNumber(number, read)) ?? null).toEqual(wanted ?? null);
	expect(read.mock.calls.length).toBeLessThanOrEqual(10);
});

test('what is buffered and what arrives are measured', () => {
	const buffered = {
		length: 2,
		start: (n: number) => [0, 20][n] ?? 0,
		end: (n: number) => [5, 28.26][n] ?? 0,
	};
	expect(aheadOf({ buffered, currentTime: 22 })).toBe(6.3);
	expect(aheadOf({ buffered, currentTime: 10 })).toBe(0);
	const meter = new RateMeter();
	expect(meter.kbps(0)).toBe(null);
	for (let at = 0; at <= 8_000; at += 500) meter.add(62_500, at);
	expect(meter.kbps(8_000)).toBeGreaterThan(900);
	expect(meter.kbps(8_000)).toBeLessThan(1_200);
	expect(meter.kbps(60_000)).toBe(null);
});

test('sounds and subtitles are named by their language and chosen one at a time', () => {
	const audioTracks = [
		{ id: 'a', label: '', language: 'de', enabled: true },
		{ id: 'b', label: 'Commentary', language: 'en', enabled: false },
	];
	const textTracks = [
		{ kind: 'metadata', label: 'id3', language: '', mode: 'hidden' },
		{ kind: 'subtitles', label: '', language: 'fr', mode: 'disabled' },
		{ kind: 'captions', label: '', language: '', mode: 'disabled' },
	];
	const video = { audioTracks, textTracks } as unknown as HTMLVideoElement;
	expect(soundsOf(video, 'en')).toEqual([
		{ id: 'a', name: 'German', isOn: true },
		{ id: 'b', name: 'Commentary', isOn: false },
	]);
	chooseSound(video, 'b');
	expect(audioTracks.map((it) => it.enabled)).toEqual([false, true]);
	expect(subtitlesOf(video, 'de').map((it) => it.name)).toEqual(['Französisch', '']);
	chooseSubtitle(video, '1');
	expect(textTracks.map((it) => it.mode)).toEqual(['hidden', 'disabled', 'showing']);
	toggleSubtitles(video);
	expect(textTracks.map((it) => it.mode)).toEqual(['hidden', 'disabled', 'disabled']);
	expect(['und', '', 'not a code'].map((it) => languageName(it, 'en'))).toEqual(['', '', 'not a code']);
});

describe('the page of a channel', () => {
	const channels = [channel(1, 1), channel(2, 2), channel(3, 30)];
	const answers: Record<string, (body: unknown) => unknown> = {
		'/api/channels/channels/by-uuids/': (body) =>
			channels
				.filter((it) => (body as { uuids: string[] }).uuids.includes(it.uuid))
				.map((it) => ({ ...it, catchup_days: 0 })),
		'/api/channels/channels/summary/': () => channels,
		'/api/epg/current-programs/': () => [
			{
				id: 7,
				channel_uuid: uuidOf(1),
				title: 'World News',
				display_title: 'World News',
				start_time: new Date(Date.now() - 600_000).toISOString(),
				end_time: new Date(Date.now() + 600_000).toISOString(),
				description: 'What happened today.',
				next: { start_time: new Date(Date.now() + 600_000).toISOString(), display_title: 'Weather' },
			},
		],
	};
	let page: ReturnType<typeof render> | undefined;

	beforeEach(async () => {
		vi.stubGlobal('fetch', async (request: Request) => {
			const answer = answers[new URL(request.url).pathname];
			const text = await request.text();
			return Response.json(answer ? answer(text ? JSON.parse(text) : null) : {});
		});
		vi.spyOn(session, 'token').mockResolvedValue('secret');
		localStorage.clear();
		session.user = { id: 1, username: 'anna', user_level: 0 } as typeof session.user;
		history.replaceState(null, '', `/watch/${uuidOf(1)}`);
		router.read();
		page = render(Watch, { id: uuidOf(1) });
		await screen.findByRole('heading', { name: 'Channel 1' });
	});
	afterEach(() => {
		page?.unmount();
		session.user = null;
		vi.unstubAllGlobals();
		vi.restoreAllMocks();
	});

	/** Presses a key as on a remote control, and shows the page that the address names. */
	async function press(key: string, path: string): Promise<void> {
		await fireEvent.keyDown(document.body, { key });
		await waitFor(() => expect(location.pathname).toBe(path));
		await page?.rerender({ id: path.split('/')[2] });
	}

	it('shows the programme that runs, and what follows', async () => {
		expect(await screen.findByRole('heading', { name: 'World News' })).toBeTruthy();
		expect(screen.getByText('What happened today.')).toBeTruthy();
		expect(screen.getByText(/Weather/)).toBeTruthy();
		expect(screen.getByRole('progressbar').getAttribute('aria-valuenow')).toBe('50');
	});

	it('lists the channels beside the picture, until they are hidden', async () => {
		const list = screen.getByRole('region', { name: 'Channels' });
		await waitFor(() => expect(list.querySelectorAll('li a')).toHaveLength(3));
		expect(list.querySelector('[aria-current]')?.textContent).toContain('Channel 1');
		await fireEvent.keyDown(document.body, { key: 'l' });
		expect(screen.queryByRole('region', { name: 'Channels' })).toBe(null);
		await fireEvent.click(screen.getByRole('button', { name: 'Show the channels' }));
		expect(screen.queryByRole('region', { name: 'Channels' })).not.toBe(null);
	});

	it('is zapped with arrows, numbers and the key for the channel before', async () => {
		await waitFor(() => expect(document.querySelectorAll('li a')).toHaveLength(3));
		await press('ArrowDown', `/watch/${uuidOf(2)}`);
		await screen.findByRole('heading', { name: 'Channel 2' });
		await press('ArrowUp', `/watch/${uuidOf(1)}`);
		await screen.findByRole('heading', { name: 'Channel 1' });
		await press('ArrowUp', `/watch/${uuidOf(3)}`);
		await screen.findByRole('heading', { name: 'Channel 3' });
		await press('Backspace', `/watch/${uuidOf(1)}`);
		await screen.findByRole('heading', { name: 'Channel 1' });
		await fireEvent.keyDown(document.body, { key: '3' });
		await fireEvent.keyDown(document.body, { key: '0' });
		expect(screen.getByLabelText('Channel 30').textContent.trim()).toBe('30');
		await press('Enter', `/watch/${uuidOf(3)}`);
		await fireEvent.keyDown(document.body, { key: '9' });
		await fireEvent.keyDown(document.body, { key: 'Enter' });
		expect(await screen.findByText('There is no channel 9.')).toBeTruthy();
	});

	it('offers the sounds that the script can choose from', async () => {
		await fireEvent.click(await screen.findByRole('button', { name: 'Sound' }));
		const items = screen.getAllByRole('menuitem', { hidden: true }).map((it) => it.textContent?.trim());
		expect(items).toEqual(['German', 'Sound 2']);
		await fireEvent.click(screen.getByRole('menuitem', { name: 'Sound 2', hidden: true }));
		expect(chosen).toEqual(['257']);
	});

	it('shows statistics, and mutes', async () => {
		const video = document.querySelector('video') as HTMLVideoElement;
		Object.defineProperty(video, 'buffered', { value: { length: 0 }, configurable: true });
		await fireEvent.keyDown(document.body, { key: 's' });
		expect(await screen.findByText('4.2 Mbit/s')).toBeTruthy();
		expect(screen.getByText('H.264, AAC')).toBeTruthy();
		await fireEvent.keyDown(document.body, { key: 'm' });
		video.dispatchEvent(new Event('volumechange'));
		expect(video.muted).toBe(true);
		expect(await screen.findByRole('button', { name: 'Unmute' })).toBeTruthy();
	});
});
