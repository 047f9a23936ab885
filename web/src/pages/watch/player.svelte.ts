import type mpegtsModule from 'mpegts.js';
import { ApiError, call, problem } from '$lib/api';
import { session } from '$lib/auth';
import { base } from '$lib/router';
import { CodecProbe, judge } from './codecs';
import { abilitiesOf, formatsOf, pathOf, withToken, type Format } from './formats';
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
	#uuid: string;
	/** Formats that may play; the first one is in use. */
	#formats: Format[];
	#player: mpegtsModule.Player | null = null;
	/** Why an earlier format cannot be played. */
	#unplayable: string | null = null;
	/** Whether the video element has an address of ours. */
	#isNative = false;
	#attempt = 0;
	#startedAt = 0;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#isEnded = false;
	#generation = 0;

	constructor(video: HTMLVideoElement, uuid: string) {
		this.#video = video;
		this.#uuid = uuid;
		this.#formats = formatsOf(abilitiesOf(video));
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
		const [format] = this.#formats;
		if (format === undefined) return this.#fail(text().noMedia);
		await (format === 'mpegts' ? this.#startScript(generation) : this.#startNative(format, generation));
	}

	/** Plays MPEG-TS with Media Source Extensions. */
	async #startScript(generation: number): Promise<void> {
		const [{ default: mpegts }, { loaderFor }] = await Promise.all([import('mpegts.js'), import('./loader')]);
		if (this.#isEnded || generation !== this.#generation) return;
		if (!mpegts.getFeatureList().mseLivePlayback) return this.#next(text().noMedia);
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
		// Only our loader opens it, and adds the base path.
		const path = pathOf('mpegts', this.#uuid) + (this.isConverted ? '?sound=aac' : '');
		const url = new URL(path, location.origin).href;
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
		await this.#play(generation, () => player.play());
	}

	/** Lets the browser play an address by itself. */
	async #startNative(format: Format, generation: number): Promise<void> {
		const path = pathOf(format, this.#uuid);
		const token = await session.token();
		if (this.#isEnded || generation !== this.#generation) return;
		const video = this.#video;
		const failed = async (): Promise<void> => {
			video.onerror = null;
			const reason = await reasonOf(path);
			if (this.#isEnded || generation !== this.#generation) return;
			const isRefused = reason instanceof ApiError;
			if (!isRefused && this.#startedAt === 0 && this.#unplayable !== null) this.#fail(this.#unplayable);
			else this.#failed(reason);
		};
		video.onerror = () => void failed();
		video.onended = () => {
			if (generation === this.#generation) this.#failed(null);
		};
		video.src = base + (token === null ? path : withToken(path, token));
		this.#isNative = true;
		await this.#play(generation, () => video.play());
	}

	async #play(generation: number, play: () => unknown): Promise<void> {
		try {
			await play();
		} catch {
			// The stream failed meanwhile.
			if (generation !== this.#generation || this.state === 'waiting') return;
			// Sound needs a click of the user first.
			this.#video.muted = true;
			await Promise.resolve(play()).catch(() => undefined);
		}
	}

	/** Plays the next format, as this one cannot be played; the reason is shown if there is none. */
	#next(reason: string): void {
		if (this.#formats.length < 2) return this.#fail(reason);
		this.#formats = this.#formats.slice(1);
		this.#unplayable = reason;
		this.#startedAt = 0;
		this.isConverted = false;
		this.missing = [];
		void this.start();
	}

	/** Tries again on request. */
	retry(): void {
		this.#attempt = 0;
		this.missing = [];
		this.#formats = formatsOf(abilitiesOf(this.#video));
		this.#unplayable = null;
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
		const generation = this.#generation;
		setTimeout(() => {
			if (generation === this.#generation) this.#next(text().codecs(missing));
		});
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
		if (!this.#isNative) return;
		this.#isNative = false;
		this.#video.onerror = null;
		this.#video.onended = null;
		this.#video.removeAttribute('src');
		// Without an address, this ends the connections of the element.
		this.#video.load();
	}
}

/** Returns why the gateway refuses an address, as a video element does not tell. */
async function reasonOf(path: string): Promise<unknown> {
	const request = new AbortController();
	try {
		await call(path, { signal: request.signal });
		return new Error(text().notPlayed);
	} catch (error) {
		return error;
	} finally {
		request.abort();
	}
}
