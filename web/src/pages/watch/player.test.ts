import { waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { LivePlayer } from './player.svelte';

const UUID = '11111111-1111-4111-8111-111111111111';
const HLS = `/proxy/hls/${UUID}/index.m3u8`;

/** Paths that were asked for. */
let asked: string[];
let answer: Response;

/** A video element of a browser that plays these types and has no Media Source Extensions. */
function video(...types: string[]): HTMLVideoElement {
	const made = document.createElement('video');
	made.canPlayType = (type) => (types.some((it) => type.startsWith(it)) ? 'maybe' : '');
	made.play = vi.fn(async () => undefined);
	made.load = vi.fn();
	return made;
}

beforeEach(() => {
	asked = [];
	answer = new Response('#EXTM3U');
	vi.stubGlobal('MediaSource', undefined);
	vi.stubGlobal('fetch', async (request: Request) => {
		asked.push(new URL(request.url).pathname);
		return answer;
	});
	vi.spyOn(session, 'token').mockResolvedValue('secret');
});
afterEach(() => {
	vi.unstubAllGlobals();
	vi.restoreAllMocks();
	vi.useRealTimers();
});

test('a phone plays HLS itself, and its connections end with the page', async () => {
	const element = video('application/vnd.apple.mpegurl', 'video/mp4');
	const player = new LivePlayer(element, UUID);
	await player.start();
	expect(element.getAttribute('src')).toBe(`${HLS}?token=secret`);
	expect(player.state).toBe('connecting');
	element.onplaying?.(new Event('playing'));
	expect(player.state).toBe('playing');
	player.end();
	expect(element.hasAttribute('src')).toBe(false);
	expect(element.load).toHaveBeenCalledOnce();
});

test('a browser with nothing else gets one MP4, and one without that is told so', async () => {
	const element = video('video/mp4');
	await new LivePlayer(element, UUID).start();
	expect(element.getAttribute('src')).toBe(`/proxy/ts/stream/${UUID}?output_format=fmp4&token=secret`);
	const player = new LivePlayer(video(), UUID);
	await player.start();
	expect([player.state, player.reason]).toEqual([
		'failed',
		'This browser cannot play live streams in a page.',
	]);
});

test('the reason of a refusal is read from the gateway, and the player tries again', async () => {
	vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
	answer = Response.json({ detail: 'All slots are in use.' }, { status: 503 });
	const element = video('application/vnd.apple.mpegurl');
	const player = new LivePlayer(element, UUID);
	await player.start();
	element.onerror?.(new Event('error'));
	await vi.waitFor(() => expect(player.state).toBe('waiting'));
	expect([player.reason, player.isFull, asked]).toEqual(['All slots are in use.', true, [HLS]]);
	expect(element.hasAttribute('src')).toBe(false);
	await vi.advanceTimersByTimeAsync(1000);
	expect(element.getAttribute('src')).toBe(`${HLS}?token=secret`);
	player.end();
});

test('a channel that may not be watched is not asked for again', async () => {
	answer = Response.json({ detail: 'There is no such channel.' }, { status: 404 });
	const element = video('application/vnd.apple.mpegurl');
	const player = new LivePlayer(element, UUID);
	await player.start();
	element.onerror?.(new Event('error'));
	await waitFor(() => expect(player.state).toBe('failed'));
	expect(player.reason).toBe('There is no such channel.');
});
