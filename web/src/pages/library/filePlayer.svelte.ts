import type mpegtsModule from 'mpegts.js';
import { ApiError, isAbort, problem } from '$lib/api';
import { CodecProbe, judge } from '../watch/codecs';
import { containerOf, HEAD_BYTES, type Container } from './container';
import { RemoteFile } from './file';
import { codecsOfMp4 } from './mp4';
import { text } from './text';
import { positionAt, timelineOf, type Timeline } from './timeline';

/** Called by the loader of a transport stream. */
export interface TsListener {
	onFailure: (error: unknown) => void;
	/** Whether more is to be read. */
	isWanted: () => boolean;
	/** Whether the file is still being written. */
	isGrowing: () => boolean;
}

/** What a player plays. */
export interface Source {
	/** Returns a fresh path of the file; it contains a token that expires. */
	path: () => Promise<string>;
	/** Whether the file is still being written. */
	isGrowing: () => boolean;
}

/** Seconds that are kept ready. */
const READY_SECONDS = 30;
/** Pictures of this many seconds before the present one are kept, for steps back. */
const KEPT_SECONDS = 60;
/** Bytes in which the codecs of a transport stream are looked for. */
const PROBE_BYTES = 1024 * 1024;
/** Time between two looks at the length of a file that is being written, in milliseconds. */
const GROWTH_MS = 10_000;

/**
 * Plays a film or an episode in a video element. MP4 files are played by the browser, which seeks by itself; transport
 * streams by our reader, which begins again at the position of a time.
 *
 * ```text
 * opening ─► ready ◄─► (the video plays, pauses, ends)
 *    └───────┴─► failed ─► opening (another try)
 * ```
 */
export class FilePlayer {
	state = $state<'opening' | 'ready' | 'failed'>('opening');
	/** Why it does not play. */
	reason = $state<string | null>(null);
	/** Whether another try may help; not for a file that this browser cannot play. */
	canRetry = $state(false);
	/** Whether no connection of the accounts is free. */
	isFull = $state(false);
	/** Codecs of the sound that this browser cannot play, although it plays the picture. */
	silent = $state<string[]>([]);
	/** Length of a transport stream in seconds; `null` for files whose length the video element knows. */
	duration = $state<number | null>(null);
	/** Whether the video element has no controls of its own for this file. */
	isStream = $state(false);
	time = $state(0);
	isPaused = $state(true);
	isEnded = $state(false);

	#video: HTMLVideoElement;
	#source: Source;
	#file: RemoteFile | null = null;
	#current = '';
	#request = new AbortController();
	#player: mpegtsModule.Player | null = null;
	#timeline: Timeline | null = null;
	/** Time at which the current run of a transport stream begins. */
	#begin = 0;
	#generation = 0;
	#growth: ReturnType<typeof setInterval> | undefined;

	constructor(video: HTMLVideoElement, source: Source) {
		this.#video = video;
		this.#source = source;
		video.ontimeupdate = () => {
			// Between two positions of a transport stream, nothing has a time.
			if (!this.isStream || this.#player) this.time = this.#begin + video.currentTime;
		};
		video.onplay = () => {
			this.isPaused = false;
			this.isEnded = false;
		};
		video.onpause = () => (this.isPaused = true);
		video.onended = () => (this.isEnded = true);
		video.onerror = () => {
			if (!this.isStream && video.getAttribute('src')) void this.#broke();
		};
	}

	/** Opens the file and plays it from a time on. */
	async start(seconds = 0): Promise<void> {
		this.#release();
		const generation = this.#generation;
		this.state = 'opening';
		this.reason = null;
		this.silent = [];
		try {
			this.#current = await this.#source.path();
			if (generation !== this.#generation) return;
			const file = new RemoteFile(this.#current, this.#request.signal);
			this.#file = file;
			const container = containerOf(await file.read(0, HEAD_BYTES));
			if (generation !== this.#generation) return;
			if (container.kind === 'unknown') return this.#fail(text().container(container.name), false);
			if (container.kind === 'ts') await this.#openStream(file, container, seconds);
			else await this.#openFile(file, container, seconds);
		} catch (error) {
			if (generation === this.#generation && !isAbort(error)) this.#failed(error);
		}
	}

	retry(): void {
		void this.start(this.time);
	}

	play(): void {
		// A browser that lets nobody play sound without a click leaves the video paused, with its button.
		void this.#video.play().catch(() => undefined);
	}

	pause(): void {
		this.#video.pause();
	}

	/** Plays from another time on. */
	jump(seconds: number): void {
		if (this.isStream) void this.seek(seconds);
		else this.#video.currentTime = seconds;
	}

	/** Plays a transport stream from another time on. */
	async seek(seconds: number): Promise<void> {
		const [timeline, file] = [this.#timeline, this.#file];
		if (!timeline || !file) return;
		const wanted = Math.min(Math.max(0, seconds), Math.max(0, timeline.duration - 1));
		this.time = wanted;
		const inside = wanted - this.#begin;
		const { buffered } = this.#video;
		for (let n = 0; n < buffered.length; n += 1) {
			if (buffered.start(n) <= inside && inside < buffered.end(n) - 0.5) {
				this.#video.currentTime = inside;
				return;
			}
		}
		const isPlaying = !this.isPaused || this.isEnded;
		this.#generation += 1;
		const generation = this.#generation;
		this.#stopStream();
		try {
			const position = await positionAt(file.read, timeline, wanted);
			if (generation !== this.#generation) return;
			await this.#run(position.at, position.seconds, isPlaying);
		} catch (error) {
			if (generation === this.#generation && !isAbort(error)) this.#failed(error);
		}
	}

	end(): void {
		this.#release();
		this.#video.onerror = null;
	}

	async #openFile(file: RemoteFile, container: Container, seconds: number): Promise<void> {
		const generation = this.#generation;
		const video = this.#video;
		if (container.kind === 'mp4' && file.size !== null) {
			const codecs = await codecsOfMp4(file.read, file.size);
			if (generation !== this.#generation) return;
			const canPlay = (type: string): boolean => video.canPlayType(type) !== '';
			const { missing, needsSound } = judge(codecs, canPlay);
			if (missing.length > 0 && !needsSound) return this.#fail(text().codecs(missing), false);
			this.silent = missing;
		}
		this.isStream = false;
		this.duration = null;
		this.#begin = 0;
		video.src = new URL(this.#current, location.href).href;
		if (seconds > 0) video.currentTime = seconds;
		this.state = 'ready';
		this.play();
	}

	async #openStream(file: RemoteFile, container: Container, seconds: number): Promise<void> {
		const generation = this.#generation;
		const probe = new CodecProbe();
		for (let at = 0; !probe.found && at < PROBE_BYTES;) {
			const bytes = await file.read(at, at + PROBE_BYTES / 16);
			if (generation !== this.#generation) return;
			if (bytes.length === 0) break;
			probe.push(bytes);
			at += bytes.length;
		}
		const { missing } = judge(probe.found ?? [], (type) => MediaSource.isTypeSupported(type));
		if (missing.length > 0) return this.#fail(text().codecs(missing), false);
		this.#timeline = file.size === null ? null : await timelineOf(file.read, file.size, container.start);
		if (generation !== this.#generation) return;
		this.isStream = true;
		this.duration = this.#timeline?.duration ?? null;
		const position =
			this.#timeline && seconds > 0
				? await positionAt(file.read, this.#timeline, seconds)
				: { at: container.start, seconds: 0 };
		if (generation !== this.#generation) return;
		if (this.#source.isGrowing()) {
			const { start } = container;
			this.#growth = setInterval(() => void this.#measure(start), GROWTH_MS);
		}
		await this.#run(position.at, position.seconds, true);
	}

	/** Reads the length of a file that is being written again. */
	async #measure(start: number): Promise<void> {
		const [last, request] = [!this.#source.isGrowing(), this.#request];
		try {
			const file = new RemoteFile(await this.#source.path(), request.signal);
			await file.read(0, HEAD_BYTES);
			const timeline = file.size === null ? null : await timelineOf(file.read, file.size, start);
			if (request.signal.aborted || !timeline) return;
			[this.#file, this.#timeline, this.duration] = [file, timeline, timeline.duration];
			if (last) clearInterval(this.#growth);
		} catch {
			// The next look may succeed; what is known stays.
		}
	}

	/** Plays a transport stream from a position in its file on. */
	async #run(position: number, seconds: number, isPlaying: boolean): Promise<void> {
		this.#generation += 1;
		const generation = this.#generation;
		const [{ default: mpegts }, { loaderFrom }] = await Promise.all([import('mpegts.js'), import('./parts')]);
		if (generation !== this.#generation) return;
		if (!mpegts.isSupported()) return this.#fail(text().noMedia, false);
		mpegts.LoggingControl.enableAll = false;
		const video = this.#video;
		const customLoader = loaderFrom(position, {
			onFailure: (error) => {
				if (generation === this.#generation) this.#failed(error);
			},
			isWanted: () => {
				const { buffered } = video;
				const ahead = buffered.length > 0 ? buffered.end(buffered.length - 1) - video.currentTime : 0;
				return ahead < READY_SECONDS;
			},
			isGrowing: () => this.#source.isGrowing(),
		});
		const url = new URL(this.#current, location.href).href;
		const player = mpegts.createPlayer(
			{ type: 'mpegts', isLive: false, url },
			{
				enableWorker: false,
				enableStashBuffer: false,
				customLoader,
				lazyLoad: false,
				autoCleanupSourceBuffer: true,
				autoCleanupMaxBackwardDuration: 2 * KEPT_SECONDS,
				autoCleanupMinBackwardDuration: KEPT_SECONDS,
			},
		);
		this.#player = player;
		this.#begin = seconds;
		player.on(mpegts.Events.ERROR, (_kind: string, _detail: string, info: { msg?: string } | undefined) => {
			if (generation === this.#generation && this.state !== 'failed')
				this.#failed(new Error(info?.msg ?? text().failed));
		});
		player.attachMediaElement(video);
		player.load();
		this.state = 'ready';
		if (isPlaying) this.play();
	}

	/** The video element gave up: the gateway knows the reason, or the file is one that this browser cannot play. */
	async #broke(): Promise<void> {
		const [generation, code] = [this.#generation, this.#video.error?.code];
		try {
			const file = new RemoteFile(this.#current, this.#request.signal);
			await file.read(0, 1);
			if (generation !== this.#generation) return;
			const isFile = code === MediaError.MEDIA_ERR_DECODE || code === MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED;
			this.#fail(isFile ? text().undecodable : text().cut, !isFile);
		} catch (error) {
			if (generation === this.#generation && !isAbort(error)) this.#failed(error);
		}
	}

	#failed(error: unknown): void {
		this.isFull = error instanceof ApiError && error.status === 503;
		const isKnown = error instanceof ApiError && error.status !== 0;
		this.#fail(error instanceof TypeError && !isKnown ? text().unreachable : problem(error), true);
	}

	#fail(reason: string, canRetry: boolean): void {
		const time = this.time;
		this.#release();
		this.time = time;
		this.state = 'failed';
		this.reason = reason;
		this.canRetry = canRetry;
	}

	#stopStream(): void {
		const player = this.#player;
		this.#player = null;
		player?.destroy();
	}

	/** Ends what runs, and closes its connections. */
	#release(): void {
		this.#generation += 1;
		clearInterval(this.#growth);
		this.#request.abort();
		this.#request = new AbortController();
		this.isFull = false;
		this.#stopStream();
		if (this.#video.getAttribute('src')) {
			this.#video.removeAttribute('src');
			this.#video.load();
		}
	}
}
