import { texts } from '$lib/i18n';

/** State of something that plays. */
export type PlayState =
	'playing' | 'opening' | 'switching' | 'resting' | 'failed' | 'full' | 'idle' | 'stopped';

interface StateLook {
	shape: string;
	tone: 'good' | 'info' | 'warn' | 'bad' | 'idle';
}

/** Each state has a shape of its own, so that colour is not needed to tell them apart. */
export const looks: Record<PlayState, StateLook> = {
	playing: { shape: '●', tone: 'good' },
	opening: { shape: '◐', tone: 'info' },
	switching: { shape: '⇄', tone: 'info' },
	resting: { shape: '‖', tone: 'warn' },
	failed: { shape: '▲', tone: 'bad' },
	full: { shape: '▲', tone: 'bad' },
	idle: { shape: '○', tone: 'idle' },
	stopped: { shape: '■', tone: 'idle' },
};

/** The words for states. The pause between two rounds of attempts is called backoff. */
export const stateWords = texts<Record<PlayState, string>>('states', {
	playing: 'playing',
	opening: 'opening',
	switching: 'switching',
	resting: 'backoff',
	failed: 'failed',
	full: 'full',
	idle: 'idle',
	stopped: 'stopped',
});

/** Returns the state with this name; unknown ones are idle. */
export const playState = (name: string): PlayState => (name in looks ? (name as PlayState) : 'idle');
