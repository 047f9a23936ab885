import { waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { pat, withSounds } from '../../testing/programMap';
import { CodecProbe } from './codecs';
import type { HlsListener } from './hlsPlayer';
import { LivePlayer } from './player.svelte';

/** What a script does with the loader of the page. */
interface TestLoader {
	open(source: { url: string }): void;
	onDataArrival: (chunk: ArrayBuffer) => void;
}

/** The addresses and listeners that the page gives to the scripts that play. */
const scripts = vi.hoisted(() => ({
	failMpegts: (_kind: string, _detail: string, _info: { msg?: string }) => undefined as void,
	loader: null as (new () => TestLoader) | null,
	hls: null as { address: string; token: string | null; listener: HlsListener } | null,
}));
vi.mock('mpegts.js', () => ({
	default: {
		getFeatureList: () => ({ mseLivePlayback: true }),
		LoggingControl: {},
		LoaderStatus: {},
		BaseLoader: class {},
		ErrorTypes: { MEDIA_ERROR: 'MediaError', NETWORK_ERROR: 'NetworkError' },
		Events: { ERROR: 'error' },
		createPlayer: (_source: unknown, config: { customLoader: new () => TestLoader }) => {
			scripts.loader = config.customLoader;
			return {
				on: (_name: string, handler: typeof scripts.failMpegts) => (scripts.failMpegts = handler),
				attachMediaElement: () => undefined,
				load: () => undefined,
				play: async () => undefined,
				destroy: () => undefined,
			};
		},
	},
}));
vi.mock('./hlsPlayer', () => ({
	isHlsSupported: () => true,
	playHls: (_video: unknown, address: string, token: string | null, listener: HlsListener) => {
		scripts.hls = { address, token, listener };
		return { destroy: () => undefined };
	},
}));

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
	scripts.hls = null;
	answer = new Response('#EXTM3U');
	vi.stubGlobal('MediaSource', undefined);
	vi.stubGlobal('fetch', async (request: Request) => {
		asked.push(new URL(request.url).pathname);
		return answer;
	});
	vi.spyOn(session, 'token').mockResolvedValue('secret');
});
afterEach(() => {
	session.user = null;
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

/** A browser with Media Source Extensions, in which scripts play. */
function withScripts(): HTMLVideoElement {
	vi.stubGlobal('MediaSource', { isTypeSupported: () => true });
	return video('video/mp4');
}

const mayPlay = (...output_formats: string[]): void => {
	session.user = { custom_properties: { output_formats } } as unknown as typeof session.user;
};

test('a format that the browser cannot play gives way to the next one, each once, and the page says so', async () => {
	const element = withScripts();
	const player = new LivePlayer(element, UUID);
	await player.start();
	expect([player.format, player.left]).toEqual(['mpegts', null]);
	scripts.failMpegts('MediaError', 'MediaCodecUnsupported', { msg: 'unknown codec' });
	await waitFor(() => expect(scripts.hls).not.toBeNull());
	expect(player.format).toBe('hls-script');
	expect(player.left).toEqual({ format: 'mpegts', reason: 'unknown codec' });
	expect(scripts.hls?.address).toBe(`${location.origin}${HLS}?container=fmp4&ll=1`);
	expect(scripts.hls?.token).toBe('secret');

	scripts.hls?.listener.onBroken('neither');
	await waitFor(() => expect(element.getAttribute('src')).toContain('output_format=fmp4'));
	expect([player.format, player.left?.format]).toEqual(['fmp4', 'mpegts']);
	element.onerror?.(new Event('error'));
	await waitFor(() => expect(player.state).toBe('failed'));
	expect(player.reason, 'that of the best format').toBe('unknown codec');

	player.retry();
	expect([player.format, player.left]).toEqual(['mpegts', null]);
	player.end();
});

test('a sound is chosen where the browser offers none, and the script begins anew with it', async () => {
	const player = new LivePlayer(withScripts(), UUID);
	const played = async (): Promise<number[]> => {
		answer = new Response(new Uint8Array([...pat, ...withSounds([0x100, 'deu'], [0x101, 'eng'])]));
		const probe = new CodecProbe();
		const loader = new scripts.loader!();
		await new Promise<void>((resolve) => {
			loader.onDataArrival = (chunk) => {
				probe.push(new Uint8Array(chunk));
				resolve();
			};
			loader.open({ url: `${location.origin}/proxy/ts/stream/${UUID}` });
		});
		return (probe.found ?? []).filter((it) => it.kind === 'audio').map((it) => it.pid);
	};
	const sounds = () => player.sounds.map(({ id, name, isOn }) => [id, name, isOn]);
	await player.start();
	expect([await played(), sounds()]).toEqual([
		[0x100, 0x101],
		[
			['256', 'German', true],
			['257', 'English', false],
		],
	]);
	const before = scripts.loader;
	player.chooseSound('999');
	player.chooseSound('257');
	await waitFor(() => expect(scripts.loader).not.toBe(before));
	expect(await played()).toEqual([0x101]);
	expect(sounds().map((it) => it[2])).toEqual([false, true]);
	player.end();
});

test('a format that has played is tried once more before another one', async () => {
	vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
	const element = withScripts();
	const player = new LivePlayer(element, UUID);
	await player.start();
	element.onplaying?.(new Event('playing'));
	scripts.failMpegts('MediaError', 'MediaMSEError', { msg: 'another codec' });
	await vi.waitFor(() => expect([player.state, player.format]).toEqual(['waiting', 'mpegts']));
	await vi.advanceTimersByTimeAsync(1000);
	expect([player.state, player.format]).toEqual(['connecting', 'mpegts']);
	await vi.waitFor(() => {
		scripts.failMpegts('MediaError', 'MediaMSEError', { msg: 'another codec' });
		expect(player.format).toBe('hls-script');
	});
	player.end();
});

test('a failure of the network does not choose another format', async () => {
	vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
	const player = new LivePlayer(withScripts(), UUID);
	await player.start();
	scripts.failMpegts('NetworkError', 'NetworkException', { msg: 'no network' });
	await vi.waitFor(() => expect(player.state).toBe('waiting'));
	expect([player.reason, player.format]).toEqual(['no network', 'mpegts']);
	player.end();
});

test('formats that the user may not play are not tried, and a chosen one is the only one', async () => {
	mayPlay('m3u8');
	const player = new LivePlayer(withScripts(), UUID);
	await player.start();
	expect(player.format).toBe('hls-script');
	scripts.hls?.listener.onBroken('no picture');
	await waitFor(() => expect([player.state, player.format]).toEqual(['waiting', 'hls-script']));
	player.end();

	mayPlay('ts');
	vi.stubGlobal('MediaSource', undefined);
	const none = new LivePlayer(video('video/mp4'), UUID);
	await none.start();
	expect(none.reason).toBe('This browser plays none of the formats that you may watch.');

	mayPlay();
	const chosen = new LivePlayer(withScripts(), UUID, 'hls');
	await chosen.start();
	expect(chosen.format).toBe('hls-script');
	chosen.end();
});

test('a session of HLS that has ended begins again, but not for a viewer who was disconnected', async () => {
	const player = new LivePlayer(withScripts(), UUID, 'hls');
	await player.start();
	scripts.hls?.listener.onInterrupted(404);
	await waitFor(() => expect(player.state).toBe('waiting'));
	expect(player.reason).toBe('The stream was interrupted.');
	player.end();

	const kicked = new LivePlayer(withScripts(), UUID, 'hls');
	await kicked.start();
	scripts.hls?.listener.onInterrupted(403);
	await waitFor(() => expect(kicked.state).toBe('failed'));
	expect(kicked.reason).toBe('You were disconnected, or may no longer watch the channel.');

	answer = Response.json({ detail: 'All slots are in use.' }, { status: 503 });
	const full = new LivePlayer(withScripts(), UUID, 'hls');
	await full.start();
	scripts.hls?.listener.onInterrupted(503);
	await waitFor(() => expect(full.state).toBe('waiting'));
	expect([full.reason, full.isFull]).toEqual(['All slots are in use.', true]);
	full.end();
});
