import { fireEvent, render, screen } from '@testing-library/svelte';
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import LiveScreen from './LiveScreen.svelte';
import { goesOn, small } from './small.svelte';
import SmallPlayer from './SmallPlayer.svelte';

/** The players that were made. */
const made = vi.hoisted(() => [] as { video: HTMLVideoElement; ended: number; started: number }[]);
vi.mock('./player.svelte', () => ({
	playableFormats: () => ['mpegts'],
	LivePlayer: class {
		state = 'playing';
		reason = null;
		sounds = [];
		ended = 0;
		started = 0;
		constructor(
			readonly video: HTMLVideoElement,
			readonly uuid: string,
		) {
			made.push(this);
		}
		start(): void {
			this.started += 1;
		}
		measured() {
			return { kbps: null, codecs: null };
		}
		end(): void {
			this.ended += 1;
		}
	},
}));

const UUID = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';

const go = (path: string): void => {
	history.replaceState(null, '', path);
	router.read();
};
const live = (uuid = UUID, choice: 'hls' | null = null) =>
	render(LiveScreen, { uuid, name: 'News', hasArchive: false, choice, onchoice: () => undefined });
const video = (): HTMLVideoElement | null => document.querySelector('video');

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 0 } as typeof session.user;
	made.length = 0;
	go(`/watch/${UUID}`);
});
afterEach(() => {
	small.close();
	session.user = null;
});

test('a channel goes on in the small frame and comes back with the same element', async () => {
	const page = live();
	const element = video();
	expect([made[0]?.started, element?.controls, element?.getAttribute('aria-label')]).toEqual([
		1,
		false,
		'Player: News',
	]);
	go('/now');
	page.unmount();
	const channel = small.channel;
	if (!channel) throw new Error('the channel ended');
	const frame = render(SmallPlayer, { channel });
	expect(video()).toBe(element);
	expect(element?.controls).toBe(false);
	expect(screen.getByRole('link', { name: 'Back to News' }).getAttribute('href')).toBe(`/watch/${UUID}`);
	await fireEvent.click(screen.getByRole('button', { name: 'Mute' }));
	expect([element?.muted, screen.queryByRole('button', { name: 'Unmute' }) !== null]).toEqual([true, true]);

	go(`/watch/${UUID}`);
	live();
	frame.unmount();
	await tick();
	expect(video()).toBe(element);
	expect([made.length, made[0]?.started, made[0]?.ended, element?.controls]).toEqual([1, 1, 0, false]);
	expect(small.channel).toBeNull();
});

test('it ends with its button, with a pause before, with another channel, and with another format', async () => {
	for (const end of [
		() => fireEvent.click(screen.getByRole('button', { name: 'Stop watching' })),
		() => live(OTHER),
		() => live(UUID, 'hls'),
	]) {
		made.length = 0;
		go(`/watch/${UUID}`);
		live().unmount();
		expect([made[0]?.ended, small.channel], 'the same page').toEqual([1, null]);
		go('/guide');
		live().unmount();
		const channel = small.channel;
		if (!channel) throw new Error('the channel ended');
		render(SmallPlayer, { channel });
		await end();
		expect([made[1]?.ended, small.channel]).toEqual([1, null]);
	}
	go('/guide');
	made.length = 0;
	const page = live();
	made[0]?.video.dispatchEvent(new Event('pause'));
	page.unmount();
	expect([made[0]?.ended, small.channel], 'paused').toEqual([1, null]);
});

test.each([
	['playing', ['now'], true],
	['playing', ['watch'], true],
	['playing', ['guide', '7'], true],
	['playing', ['watch', OTHER], false],
	['playing', ['setup'], false],
	['playing', [], false],
	['waiting', ['now'], false],
	['failed', ['now'], false],
] as const)('a channel that is %s goes on at %j: %s', (state, segments, expected) =>
	expect(goesOn(state, segments)).toBe(expected),
);
