// A live channel that goes on in a small frame while other pages are open. The frame belongs to the layout.

import type { Component } from 'svelte';
import type { Choice } from './formats';
import type { LivePlayer } from './player.svelte';

/** A channel that plays, with the element in which it does. */
export interface PlayingChannel {
	uuid: string;
	name: string;
	/** The format that the viewer has chosen. */
	choice: Choice | null;
	video: HTMLVideoElement;
	player: LivePlayer;
	/** What shows it in the frame: it is loaded with the page of the player. */
	View: Component<{ channel: PlayingChannel }>;
}

class SmallFrame {
	channel = $state.raw<PlayingChannel | null>(null);

	/** Goes on with a channel. */
	keep(channel: PlayingChannel): void {
		this.close();
		this.channel = channel;
	}

	/** Gives back a channel that goes on here, or ends another one: a browser has few connections to a host. */
	take(uuid: string, choice: Choice | null): PlayingChannel | null {
		const { channel } = this;
		this.channel = null;
		if (channel?.uuid === uuid && channel.choice === choice) return channel;
		channel?.player.end();
		return null;
	}

	/** Ends the channel. */
	close(): void {
		this.channel?.player.end();
		this.channel = null;
	}
}

export const small = new SmallFrame();

/** Returns whether a channel goes on when its page is left for the one with these segments, which may have a player too. */
export const goesOn = (state: LivePlayer['state'], segments: readonly string[]): boolean =>
	state === 'playing' &&
	segments.length > 0 &&
	segments[0] !== 'setup' &&
	!(segments[0] === 'watch' && segments.length > 1);
