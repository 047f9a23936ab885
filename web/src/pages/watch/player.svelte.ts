import type mpegtsModule from 'mpegts.js';
import { ApiError, problem } from '$lib/api';
import { CodecProbe, judge } from './codecs';
import { text } from './text';

/** Pauses before another attempt, in seconds; after the last one the reason is shown. */
const RETRY_SECONDS = [1, 2, 4];
/** Playback of this length makes the next failure a new one. */
const STABLE_MS = 20_000;

/** Plays one channel in a video element. */
export class LivePlayer {
	state = $state<'connecting' | 'playing' | 'waiting' | 'failed'>('connecting');
	/** Why it does not play. */
	reason = $state<string | null>(null);
	/** Whether every slot of the accounts is in use. */
	isFull = $state(false);
	isConverted = $state(false);
	/** Codecs that this browser cannot play. */
	missing = $state<string[]>([]);
	retryIn = $state(0);

	#video: HTMLVideoElement;
	#path: string;
	#player: mpegtsModule.Player | null = null;
	#attempt = 0;
	#startedAt = 0;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#isEnded = false;
	#generation = 0;

	constructor(video: HTMLVideoElement, path: string) {
		this.#video = video;
		this.#path = path;
		video.onplaying = () => {
			this.state = 'playing';
			this.#startedAt = performance.now();
		};
	}

	async start(): Promise<void> {
		clearTimeout(this.#timer);
		this.#release();
		this.#generation += 1;
		const generation = this.#generation;
		this.state = 'connecting';
		this.reason = null;
		const [{ default: mpegts }, { loaderFor }] = await Promise.all([import('mpegts.js'), import('./loader')]);
		if (this.#isEnded || generation !== this.#generation) return;
		if (!mpegts.getFeatureList().mseLivePlayback) return this.#fail(text().noMedia);
		mpegts.LoggingControl.enableAll = false;
		const probe = new CodecProbe();
		const customLoader = loaderFor({
			onBytes: (bytes) => {
				if (generation === this.#generation && probe.push(bytes)) this.#judge(probe);
			},
			onFailure: (error) => {
				if (generation === this.#generation) this.#failed(error);
			},
		});
		const url = new URL(this.#path + (this.isConverted ? '?sound=aac' : ''), location.origin).href;
		const player = mpegts.createPlayer(
			{ type: 'mpegts', isLive: true, url },
			{ enableWorker: false, customLoader, lazyLoad: false, autoCleanupSourceBuffer: true, liveSync: true },
		);
		this.#player = player;
		player.on(mpegts.Events.ERROR, (_kind: string, _detail: string, info: { msg?: string } | undefined) => {
			if (generation === this.#generation && this.state !== 'failed')
				this.#failed(new Error(info?.msg ?? text().failed));
		});
		player.attachMediaElement(this.#video);
		player.load();
		try {
			await player.play();
		} catch {
			// The player is gone if the stream failed meanwhile.
			if (this.#player !== player) return;
			// Sound needs a click of the user first.
			this.#video.muted = true;
			await Promise.resolve(player.play()).catch(() => undefined);
		}
	}

	/** Tries again on request. */
	retry(): void {
		this.#attempt = 0;
		this.missing = [];
		void this.start();
	}

	end(): void {
		this.#isEnded = true;
		this.#generation += 1;
		clearTimeout(this.#timer);
		this.#release();
	}

	#judge(probe: CodecProbe): void {
		const { missing, needsSound } = judge(probe.found ?? [], (type) => MediaSource.isTypeSupported(type));
		if (missing.length === 0) return;
		if (needsSound && !this.isConverted) {
			this.isConverted = true;
			this.missing = missing;
			setTimeout(() => void this.start());
			return;
		}
		this.missing = missing;
		setTimeout(() => this.#fail(text().codecs(missing)));
	}

	#failed(error: unknown): void {
		const again = performance.now() - this.#startedAt > STABLE_MS && this.#startedAt > 0;
		if (again) this.#attempt = 0;
		this.#startedAt = 0;
		this.isFull = error instanceof ApiError && error.status === 503;
		const reason = error === null ? text().ended : problem(error);
		const isFinal = error instanceof ApiError && error.status >= 400 && error.status < 500;
		const pause = RETRY_SECONDS[this.#attempt];
		if (isFinal || pause === undefined) return this.#fail(reason);
		this.#attempt += 1;
		this.#release();
		this.state = 'waiting';
		this.reason = reason;
		this.retryIn = pause;
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => void this.start(), pause * 1000);
	}

	#fail(reason: string): void {
		this.#generation += 1;
		clearTimeout(this.#timer);
		this.#release();
		this.state = 'failed';
		this.reason = reason;
	}

	#release(): void {
		const player = this.#player;
		this.#player = null;
		player?.destroy();
	}
}
