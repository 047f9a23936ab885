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
	/** Called where the time stamps of the file jump: the time in what is played, and by how much they go ahead. */
	onJump: (at: number, ahead: number) => void;
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
/** Time between two moves of the end of such a file, in milliseconds. */
const TICK_MS = 1_000;
/** Seconds before the end of such a file at which its newest part is played, so that it does not stop at once. */
const EDGE_SECONDS = 4;

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
	/** Whether the file is being written, so that its newest part can be played. */
	isGrowing = $state(false);
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
	/** Gaps of the file in the current run: their times in what is played, and the seconds left out up to there. */
	#gaps: { at: number; left: number }[] = [];
	#generation = 0;
	#growth: ReturnType<typeof setInterval> | undefined;
	/** When the length of a file that is being written was read, and whether that is going on. */
	#measuredAt = 0;
	#isMeasuring = false;
	/** Number of seeks so far. */
	#seeks = 0;
	/** Position of the first packet of a transport stream. */
	#first = 0;

	constructor(video: HTMLVideoElement, source: Source) {
		this.#video = video;
		this.#source = source;
		video.ontimeupdate = () => {
			// Between two positions of a transport stream, nothing has a time.
			if (!this.isStream || this.#player) this.time = this.#timeOf(video.currentTime);
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

	/** Opens the file and plays it from a time on, or waits there. */
	async start(seconds = 0, isPlaying = true): Promise<void> {
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
			if (container.kind === 'ts') await this.#openStream(file, container, seconds, isPlaying);
			else await this.#openFile(file, container, seconds, isPlaying);
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

	/** Plays the newest part of a file that is being written. */
	newest(): void {
		void this.seek(Infinity);
	}

	/** Plays a transport stream from another time on. */
	async seek(seconds: number): Promise<void> {
		this.#seeks += 1;
		const [seek, before] = [this.#seeks, this.#generation];
		this.time = Math.min(seconds, this.duration ?? 0);
		if (this.isGrowing && seconds > (this.#timeline?.duration ?? 0) - EDGE_SECONDS) await this.#measure();
		const [timeline, file] = [this.#timeline, this.#file];
		if (!timeline || !file || seek !== this.#seeks || before !== this.#generation) return;
		const margin = this.isGrowing ? EDGE_SECONDS : 1;
		const wanted = Math.min(Math.max(0, seconds), Math.max(0, timeline.duration - margin));
		this.time = wanted;
		const inside = this.#insideOf(wanted);
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

	async #openFile(
		file: RemoteFile,
		container: Container,
		seconds: number,
		isPlaying: boolean,
	): Promise<void> {
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
		[this.#begin, this.#gaps] = [0, []];
		video.src = new URL(this.#current, location.href).href;
		if (seconds > 0) video.currentTime = seconds;
		this.state = 'ready';
		if (isPlaying) this.play();
	}

	async #openStream(
		file: RemoteFile,
		container: Container,
		seconds: number,
		isPlaying: boolean,
	): Promise<void> {
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
		this.isGrowing = this.#source.isGrowing();
		if (this.isGrowing) {
			[this.#first, this.#measuredAt] = [container.start, Date.now()];
			this.#growth = setInterval(() => this.#grow(), TICK_MS);
		}
		await this.#run(position.at, position.seconds, isPlaying);
	}

	/** Returns the time in the file of a time in what is played. */
	#timeOf(inside: number): number {
		const left = this.#gaps.findLast((it) => it.at <= inside)?.left ?? 0;
		return this.#begin + inside + left;
	}

	/** Returns the time in what is played of a time in the file; that of a gap is its end. */
	#insideOf(time: number): number {
		let left = 0;
		for (const gap of this.#gaps) {
			if (time - this.#begin - left < gap.at) break;
			left = gap.left;
			if (time - this.#begin - left < gap.at) return gap.at;
		}
		return time - this.#begin - left;
	}

	/** Moves the end of a file that is being written; its length is read now and then. */
	#grow(): void {
		const age = Date.now() - this.#measuredAt;
		if (!this.#source.isGrowing() || !this.#timeline || age >= GROWTH_MS) void this.#measure();
		else this.duration = this.#timeline.duration + age / 1000;
	}

	/** Reads the length of a file that is being written again. */
	async #measure(): Promise<void> {
		if (this.#isMeasuring) return;
		this.#isMeasuring = true;
		const [last, request] = [!this.#source.isGrowing(), this.#request];
		try {
			const file = new RemoteFile(await this.#source.path(), request.signal);
			await file.read(0, HEAD_BYTES);
			const timeline = file.size === null ? null : await timelineOf(file.read, file.size, this.#first);
			if (request.signal.aborted || !timeline) return;
			[this.#file, this.#timeline, this.duration] = [file, timeline, timeline.duration];
			this.#measuredAt = Date.now();
			if (last) {
				clearInterval(this.#growth);
				this.isGrowing = false;
			}
		} catch {
			// The next look may succeed; what is known stays.
		} finally {
			this.#isMeasuring = false;
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
			onJump: (at, ahead) => {
				// Without a known length, the clocks before and after it may have nothing to do with each other.
				const length = this.#timeline?.duration ?? 0;
				const left = (this.#gaps.at(-1)?.left ?? 0) + ahead;
				if (generation === this.#generation && seconds + at + left <= length) this.#gaps.push({ at, left });
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
		[this.#begin, this.#gaps] = [seconds, []];
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
		const isKnown = error instanceof ApiError && error.status !== 0;
		this.#fail(error instanceof TypeError && !isKnown ? text().unreachable : problem(error), true);
		this.isFull = error instanceof ApiError && error.status === 503;
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
		this.isGrowing = false;
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
