// What a video element does, as state that components follow.

import { locale } from '$lib/i18n';
import { soundsOf, subtitlesOf, type Track } from './tracks';

/** The remote playback of browsers by Apple, older than the standard. */
export interface WithAirPlay {
	webkitShowPlaybackTargetPicker?: () => void;
	webkitEnterFullscreen?: () => void;
}

export class VideoState {
	isPaused = $state(true);
	isMuted = $state(false);
	volume = $state(1);
	/** Whether it is in a window of its own. */
	isInset = $state(false);
	/** Whether a device in the network can play it. */
	canCast = $state(false);
	sounds = $state.raw<Track[]>([]);
	subtitles = $state.raw<Track[]>([]);

	#video: HTMLVideoElement;
	#watching: number | undefined;
	#ended = new AbortController();

	constructor(video: HTMLVideoElement) {
		this.#video = video;
		const { signal } = this.#ended;
		const on = (target: EventTarget | undefined, names: string, run: () => void): void =>
			names.split(' ').forEach((it) => target?.addEventListener(it, run, { signal }));
		on(video, 'play playing pause volumechange enterpictureinpicture leavepictureinpicture', () =>
			this.read(),
		);
		on(video, 'loadedmetadata', () => this.readTracks());
		on(video.textTracks, 'addtrack removetrack change', () => this.readTracks());
		const { audioTracks } = video as HTMLVideoElement & { audioTracks?: EventTarget };
		on(audioTracks, 'addtrack removetrack change', () => this.readTracks());
		this.#watchDevices(signal);
		this.read();
		this.readTracks();
	}

	/** Reads the state of the element. */
	read(): void {
		const video = this.#video;
		this.isPaused = video.paused;
		this.isMuted = video.muted || video.volume === 0;
		this.volume = video.volume;
		this.isInset = document.pictureInPictureElement === video;
	}

	readTracks(): void {
		this.sounds = soundsOf(this.#video, locale);
		this.subtitles = subtitlesOf(this.#video, locale);
	}

	/** Lets the viewer choose a device of the network. */
	async cast(): Promise<void> {
		const video: HTMLVideoElement & WithAirPlay = this.#video;
		if (video.webkitShowPlaybackTargetPicker) video.webkitShowPlaybackTargetPicker();
		else await video.remote.prompt();
	}

	end(): void {
		this.#ended.abort();
		if (this.#watching !== undefined)
			void this.#video.remote.cancelWatchAvailability(this.#watching).catch(() => undefined);
	}

	/** Browsers tell of devices on pages with HTTPS and on this machine only, and not of every format. */
	#watchDevices(signal: AbortSignal): void {
		const video: HTMLVideoElement & WithAirPlay = this.#video;
		if (video.webkitShowPlaybackTargetPicker) {
			const changed = (it: Event): void => {
				this.canCast = (it as Event & { availability?: string }).availability === 'available';
			};
			video.addEventListener('webkitplaybacktargetavailabilitychanged', changed, { signal });
			return;
		}
		if (!globalThis.isSecureContext || !('remote' in video) || !video.remote) return;
		video.remote
			.watchAvailability((isAvailable) => (this.canCast = isAvailable))
			.then((id) => (this.#watching = id))
			.catch(() => undefined);
	}
}
