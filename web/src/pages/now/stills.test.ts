import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LiveChannel } from '$lib/live';
import Still from './Still.svelte';
import { mayShow, RENEWAL_MS } from './stills.svelte';

const UUID = '11111111-1111-4111-8111-111111111111';
const CHANNEL = {
	channel_id: UUID,
	channel_name: 'News',
	state: 'playing',
	stream_id: 7,
	video_codec: 'h264',
} as LiveChannel;

/** What the gateway answers next, and what it was asked. */
let answers: (() => Response)[];
let asked: { path: string; tag: string | null }[];
let seen: (isSeen: boolean) => void;
const urls = { made: 0, revoked: [] as string[] };

const picture =
	(tag: string): (() => Response) =>
	() =>
		new Response('picture', { headers: { 'Content-Type': 'video/mp4', ETag: tag } });

beforeEach(() => {
	vi.useFakeTimers();
	answers = [picture('"1"')];
	asked = [];
	Object.assign(urls, { made: 0, revoked: [] });
	vi.stubGlobal('fetch', async (request: Request) => {
		asked.push({ path: new URL(request.url).pathname, tag: request.headers.get('If-None-Match') });
		const answer = answers.length > 1 ? answers.shift() : answers[0];
		return answer?.() ?? Response.error();
	});
	vi.stubGlobal(
		'IntersectionObserver',
		class {
			constructor(run: (entries: { isIntersecting: boolean }[]) => void) {
				seen = (isIntersecting) => run([{ isIntersecting }]);
			}
			observe(): void {}
			disconnect(): void {}
		},
	);
	vi.spyOn(URL, 'createObjectURL').mockImplementation(() => `blob:${++urls.made}`);
	vi.spyOn(URL, 'revokeObjectURL').mockImplementation((url) => void urls.revoked.push(url));
});
afterEach(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
	vi.restoreAllMocks();
});

const show = (props: Partial<{ channel: LiveChannel; isAdult: boolean | null }> = {}) =>
	render(Still, { channel: CHANNEL, logo: '/api/channels/logos/5/cache/', isAdult: false, ...props });
const after = (length: number): Promise<unknown> => vi.advanceTimersByTimeAsync(length);
const videos = (): HTMLVideoElement[] => [...document.querySelectorAll('video')];
const logo = (): Element | null => document.querySelector('img');

test('a card asks for a picture only while it is seen, at most every ten seconds', async () => {
	show();
	await after(30_000);
	expect(asked).toEqual([]);
	seen(true);
	await after(100);
	expect(asked).toEqual([{ path: `/proxy/ts/still/${UUID}`, tag: null }]);
	seen(false);
	await after(100);
	seen(true);
	await after(RENEWAL_MS - 300);
	expect(asked).toHaveLength(1);
	await after(300);
	expect(asked.map((it) => it.tag)).toEqual([null, '"1"']);
	seen(false);
	await after(60_000);
	expect(asked).toHaveLength(2);
	expect(videos(), 'decoders are free while nothing is seen').toEqual([]);
});

test('a picture stays until the next one is decoded, and an unchanged one is not replaced', async () => {
	answers = [picture('"1"'), () => new Response(null, { status: 304 }), picture('"2"')];
	const { unmount } = show();
	seen(true);
	await after(100);
	expect(logo()).not.toBeNull();
	await fireEvent(videos()[0] as Element, new Event('loadeddata'));
	expect(logo()).toBeNull();
	expect((videos()[0] as HTMLVideoElement).muted).toBe(true);
	await after(RENEWAL_MS);
	expect(videos().map((it) => it.getAttribute('src'))).toEqual(['blob:1']);
	await after(RENEWAL_MS);
	expect(videos().map((it) => it.getAttribute('src'))).toEqual(['blob:1', 'blob:2']);
	await fireEvent(videos()[1] as Element, new Event('loadeddata'));
	expect(videos().map((it) => it.getAttribute('src'))).toEqual(['blob:2']);
	expect(urls.revoked).toEqual(['blob:1']);
	unmount();
	expect(urls.revoked).toEqual(['blob:1', 'blob:2']);
});

test('without a picture the logo is shown, and a picture that the browser cannot show is not asked for again', async () => {
	answers = [
		() => new Response(null, { status: 204 }),
		() => Response.json({ detail: 'channel not found' }, { status: 404 }),
		picture('"1"'),
	];
	const { rerender } = show();
	seen(true);
	await after(100);
	expect(videos()).toEqual([]);
	expect(logo()).not.toBeNull();
	await after(RENEWAL_MS);
	expect(videos()).toEqual([]);
	await after(RENEWAL_MS);
	await fireEvent(videos()[0] as Element, new Event('error'));
	await after(60_000);
	expect(asked).toHaveLength(3);
	expect(logo()).not.toBeNull();
	await rerender({ channel: { ...CHANNEL, stream_id: 8 } });
	await after(100);
	expect(asked, 'another stream is tried').toHaveLength(4);
});

test('an adult channel shows its picture after a click, and an unknown one not before it is known', async () => {
	const { rerender } = show({ isAdult: null });
	seen(true);
	await after(100);
	expect(screen.queryByRole('button')).toBeNull();
	await rerender({ isAdult: true });
	await after(30_000);
	expect(asked).toEqual([]);
	await fireEvent.click(screen.getByRole('button', { name: 'Show picture: News' }));
	await after(100);
	expect(asked).toHaveLength(1);
	expect(screen.getByRole('link', { name: 'Watch News' }).getAttribute('href')).toBe(`/watch/${UUID}`);
});

test.each([
	['h264', true],
	['hevc', true],
	[null, true],
	[undefined, true],
	['mpeg2video', false],
])('a browser may show %s: %s', (codec, expected) => expect(mayShow(codec)).toBe(expected));

test.each(['opening', 'resting', 'switching'])('a channel that is %s is not asked', async (state) => {
	show({ channel: { ...CHANNEL, state } });
	seen(true);
	await after(30_000);
	expect(asked).toEqual([]);
});
