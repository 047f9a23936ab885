import type mpegtsModule from 'mpegts.js';
import { ApiError, call, isAbort, problem } from '$lib/api';
import { session } from '$lib/auth';
import { locale } from '$lib/i18n';
import { base } from '$lib/router';
import { OUTPUT_FORMATS, outputFormatsOf } from '../common/outputFormats';
import { CodecProbe, judge, type FoundStream, type SoundWish } from './codecs';
import {
	abilitiesOf,
	formatsOf,
	pathOf,
	withParameter,
	withToken,
	type Choice,
	type Format,
} from './formats';
import { RateMeter, type Measured } from './measure';
import { text } from './text';
import { languageName, type Track } from './tracks';

/** Pauses before another attempt, in seconds; after the last one the reason is shown. */
const RETRY_SECONDS = [1, 2, 4];
/** Playback of this length makes the next failure a new one. */
const STABLE_MS = 20_000;
/** Status of an answer that forbids. */
const FORBIDDEN = 403;

/** Returns the formats that this browser plays and this user may play, the best one first. */
export function playableFormats(
	video: Pick<HTMLVideoElement, 'canPlayType'>,
	choice: Choice | null = null,
): Format[] {
	const allowed = outputFormatsOf(session.user?.custom_properties.output_formats);
	return formatsOf(abilitiesOf(video), allowed, choice);
}

/** A script that plays in a video element. */
interface ScriptPlayer {
	destroy(): void;
	/** What it measures. */
	measured?: () => Measured;
}

/** Plays one channel in a video element. */
export class LivePlayer {
	state = $state<'connecting' | 'playing' | 'waiting' | 'failed'>('connecting');
	/** Why it does not play. */
	reason = $state<string | null>(null);
	/** Whether every slot of the accounts is in use. */
	isFull = $state(false);
	isConverted = $state(false);
	/** The format in use. */
	format = $state<Format | null>(null);
	/** The best format, if it does not play here, and why. */
	left = $state<{ format: Format; reason: string } | null>(null);
	/** Codecs that this browser cannot play. */
	missing = $state<string[]>([]);
	retryIn = $state(0);
	/** The sounds that the script can choose from, by their packet ids; empty while the browser itself plays. */
	sounds = $state.raw<Track[]>([]);

	#video: HTMLVideoElement;
	#uuid: string;
	#choice: Choice | null;
	/** Formats that may play; the first one is in use. */
	#formats: Format[];
	#player: ScriptPlayer | null = null;
	/** Whether the format has failed although it had played. */
	#hasBroken = false;
	/** Whether the video element has an address of ours. */
	#isNative = false;
	#attempt = 0;
	#startedAt = 0;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#isEnded = false;
	#generation = 0;
	/** The streams that the script may play. */
	#found: FoundStream[] = [];
	#wish: SoundWish | null = null;

	/** With a choice, no other format is played. */
	constructor(video: HTMLVideoElement, uuid: string, choice: Choice | null = null) {
		this.#video = video;
		this.#uuid = uuid;
		this.#choice = choice;
		this.#formats = playableFormats(video, choice);
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
		this.format = format ?? null;
		if (format !== 'mpegts') this.sounds = [];
		if (format === undefined) {
			const plays = formatsOf(abilitiesOf(this.#video), OUTPUT_FORMATS);
			return this.#fail(plays.length === 0 ? text().noMedia : text().noFormat);
		}
		if (format === 'mpegts') await this.#startMpegts(generation);
		else if (format === 'hls-script') await this.#startHls(generation);
		else await this.#startNative(format, generation);
	}

	/** Plays MPEG-TS with Media Source Extensions. */
	async #startMpegts(generation: number): Promise<void> {
		const [{ default: mpegts }, { loaderFor }] = await Promise.all([import('mpegts.js'), import('./loader')]);
		if (this.#isStale(generation)) return;
		if (!mpegts.getFeatureList().mseLivePlayback) return this.#next(text().noMedia);
		mpegts.LoggingControl.enableAll = false;
		const probe = new CodecProbe();
		probe.wish = this.#wish;
		const meter = new RateMeter();
		const customLoader = loaderFor({
			onBytes: (bytes) => {
				meter.add(bytes.length);
				if (generation === this.#generation && probe.push(bytes)) this.#judge(probe);
				return probe.passed;
			},
			onFailure: (error) => {
				if (generation === this.#generation) this.#failed(error);
			},
		});
		// Only our loader opens it, and adds the base path.
		const path = pathOf('mpegts', this.#uuid);
		const url = new URL(this.isConverted ? withParameter(path, 'sound', 'aac') : path, location.origin).href;
		const player: mpegtsModule.Player = mpegts.createPlayer(
			{ type: 'mpegts', isLive: true, url },
			{ enableWorker: false, customLoader, lazyLoad: false, autoCleanupSourceBuffer: true, liveSync: true },
		);
		this.#player = {
			destroy: () => player.destroy(),
			measured: () => ({
				kbps: meter.kbps(),
				codecs: probe.found?.map((it) => it.name).join(', ') || null,
			}),
		};
		player.on(mpegts.Events.ERROR, (kind: string, _detail: string, info: { msg?: string } | undefined) => {
			const reason = info?.msg ?? text().notPlayed;
			const isMedia = kind === mpegts.ErrorTypes.MEDIA_ERROR;
			this.#soon(generation, () => (isMedia ? this.#broken(reason) : this.#failed(new Error(reason))));
		});
		this.#breaksWithVideo(generation);
		player.attachMediaElement(this.#video);
		player.load();
		await this.#play(generation, () => player.play());
	}

	/** Plays HLS with Media Source Extensions. */
	async #startHls(generation: number): Promise<void> {
		const [{ isHlsSupported, playHls }, token] = await Promise.all([import('./hlsPlayer'), session.token()]);
		if (this.#isStale(generation)) return;
		if (!isHlsSupported()) return this.#next(text().noMedia);
		const path = pathOf('hls-script', this.#uuid);
		const interrupted = async (status: number): Promise<void> => {
			const refusal = await refusalOf(path);
			if (this.#isStale(generation)) return;
			if (refusal instanceof ApiError) this.#failed(refusal);
			else if (status === FORBIDDEN) this.#fail(text().disconnected);
			else this.#failed(new Error(text().interrupted));
		};
		this.#breaksWithVideo(generation);
		this.#video.onended = () => {
			if (generation === this.#generation) this.#failed(null);
		};
		this.#player = playHls(this.#video, new URL(base + path, location.href).href, token, {
			onBroken: (reason) => this.#soon(generation, () => this.#broken(reason)),
			onInterrupted: (status) => this.#soon(generation, () => void interrupted(status)),
		});
		await this.#play(generation, () => this.#video.play());
	}

	/** Reacts to an event of a script, once the script has done its part. Ending it before that makes it fail. */
	#soon(generation: number, react: () => void): void {
		queueMicrotask(() => {
			if (!this.#isStale(generation)) react();
		});
	}

	/** Takes an error of the video element as one of the format. */
	#breaksWithVideo(generation: number): void {
		const video = this.#video;
		video.onerror = () => {
			if (generation === this.#generation) this.#broken(video.error?.message || text().notPlayed);
		};
	}

	/** Lets the browser play an address by itself. */
	async #startNative(format: Format, generation: number): Promise<void> {
		const path = pathOf(format, this.#uuid);
		const token = await session.token();
		if (this.#isStale(generation)) return;
		const video = this.#video;
		const failed = async (): Promise<void> => {
			video.onerror = null;
			const refusal = await refusalOf(path);
			if (this.#isStale(generation)) return;
			if (refusal instanceof ApiError) this.#failed(refusal);
			else this.#broken(text().notPlayed);
		};
		video.onerror = () => void failed();
		video.onended = () => {
			if (generation === this.#generation) this.#failed(null);
		};
		video.src = base + (token === null ? path : withToken(path, token));
		this.#isNative = true;
		await this.#play(generation, () => video.play());
	}

	/** Returns whether something newer has begun. */
	#isStale(generation: number): boolean {
		return this.#isEnded || generation !== this.#generation;
	}

	async #play(generation: number, play: () => unknown): Promise<void> {
		try {
			await play();
		} catch (error) {
			// The stream failed meanwhile.
			if (generation !== this.#generation) return;
			// Sound needs a click of the user first.
			if (!isAbort(error)) this.#video.muted = true;
			await Promise.resolve(play()).catch(() => undefined);
		}
	}

	/** Plays the next format, as this one cannot be played; if there is none, says why the best one is not. */
	#next(reason: string): void {
		const [format, ...others] = this.#formats;
		if (format === undefined || others.length === 0) return this.#fail(this.left?.reason ?? reason);
		this.left ??= { format, reason };
		this.#formats = others;
		this.#startedAt = 0;
		this.#hasBroken = false;
		this.isConverted = false;
		this.missing = [];
		void this.start();
	}

	/**
	 * Tries a format once more that the browser failed to play although it had played, because another stream of the
	 * channel may have taken over; otherwise the next one.
	 */
	#broken(reason: string): void {
		if (this.#isStable) this.#hasBroken = false;
		const isOnly = this.#formats.length < 2 && this.left === null;
		if (!isOnly && (this.#startedAt === 0 || this.#hasBroken)) return this.#next(reason);
		this.#hasBroken = true;
		this.#failed(new Error(reason));
	}

	/** Tries again on request. */
	retry(): void {
		this.#attempt = 0;
		this.#hasBroken = false;
		this.isConverted = false;
		this.missing = [];
		this.left = null;
		this.#formats = playableFormats(this.#video, this.#choice);
		void this.start();
	}

	/** What the script measures; nothing while the browser itself plays. */
	measured(): Measured {
		return this.#player?.measured?.() ?? { kbps: null, codecs: null };
	}

	end(): void {
		this.#isEnded = true;
		this.#generation += 1;
		clearTimeout(this.#timer);
		this.#release();
	}

	/** Plays another one of the sounds. The script has to begin anew. */
	chooseSound(id: string): void {
		const sound = this.#found.find((it) => String(it.pid) === id);
		if (!sound || this.format !== 'mpegts') return;
		this.#wish = { pid: sound.pid, language: sound.language };
		void this.start();
	}

	#listSounds(probe: CodecProbe, isSupported: (type: string) => boolean): void {
		this.#found = probe.found ?? [];
		const { sound } = probe;
		this.sounds = this.#found
			.filter((it) => it.kind === 'audio' && it.isTaken && it.type !== null && isSupported(it.type))
			.map((it) => ({
				id: String(it.pid),
				name: languageName(it.language, locale),
				isOn: it === sound,
			}));
	}

	#judge(probe: CodecProbe): void {
		const isSupported = (type: string): boolean => MediaSource.isTypeSupported(type);
		this.#listSounds(probe, isSupported);
		const { missing, needsSound } = judge(probe.playing, isSupported);
		if (missing.length === 0) return;
		if (needsSound && !this.isConverted) {
			this.isConverted = true;
			this.missing = missing;
			setTimeout(() => void this.start());
			return;
		}
		this.missing = missing;
		// Scripts have the same decoders; the browser itself may have more.
		const others = this.#formats.slice(1);
		this.#formats = [...this.#formats.slice(0, 1), ...others.filter((it) => needsSound || it === 'hls')];
		const generation = this.#generation;
		setTimeout(() => {
			if (generation === this.#generation) this.#next(text().codecs(missing));
		});
	}

	/** Whether what plays has played for long enough to make a failure a new one. */
	get #isStable(): boolean {
		return this.#startedAt > 0 && performance.now() - this.#startedAt > STABLE_MS;
	}

	#failed(error: unknown): void {
		if (this.#isStable) this.#attempt = 0;
		this.#startedAt = 0;
		this.isFull = error instanceof ApiError && error.status === 503;
		const reason = error === null ? text().ended : problem(error);
		// The user may play other formats.
		const isForbidden = error instanceof ApiError && error.status === FORBIDDEN;
		if (isForbidden && this.#formats.length > 1) return this.#next(reason);
		const isFinal = error instanceof ApiError && error.status >= 400 && error.status < 500;
		const pause = RETRY_SECONDS[this.#attempt];
		if (isFinal || pause === undefined) return this.#fail(reason);
		this.#attempt += 1;
		this.#generation += 1;
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
		this.#video.onerror = null;
		this.#video.onended = null;
		player?.destroy();
		if (!this.#isNative) return;
		this.#isNative = false;
		this.#video.removeAttribute('src');
		// Without an address, this ends the connections of the element.
		this.#video.load();
	}
}

/** Returns why the gateway refuses an address, as a video element does not tell; `null` if it does not. */
async function refusalOf(path: string): Promise<unknown> {
	const request = new AbortController();
	try {
		await call(path, { signal: request.signal });
		return null;
	} catch (error) {
		return error;
	} finally {
		request.abort();
	}
}
