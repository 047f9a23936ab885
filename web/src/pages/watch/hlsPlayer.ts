// Plays HLS with a script. Loaded on demand, because the library is large.

import Hls, { ErrorTypes, Events } from 'hls.js/light';
import type { Measured } from './measure';

/** Called with the failures that the library cannot mend. */
export interface HlsListener {
	/** The browser cannot play what arrives. */
	onBroken: (reason: string) => void;
	/** A request failed; `status` is 0 without an answer. */
	onInterrupted: (status: number) => void;
}

/** Maximum time until the master playlist, which waits for the first segment, in milliseconds. */
const MASTER_TIMEOUT_MS = 60_000;
/** Length of what has played and stays in memory, in seconds. */
const PLAYED_SECONDS = 30;

export const isHlsSupported = (): boolean => Hls.isSupported();

/** Plays the master playlist at an address. The address of a session in it needs no token. */
export function playHls(
	video: HTMLVideoElement,
	address: string,
	token: string | null,
	listener: HlsListener,
): { destroy: () => void; measured: () => Measured } {
	const hls = new Hls({
		// The content policy allows no workers.
		enableWorker: false,
		lowLatencyMode: true,
		backBufferLength: PLAYED_SECONDS,
		// The page tries again itself, and says why.
		manifestLoadPolicy: {
			default: {
				maxTimeToFirstByteMs: MASTER_TIMEOUT_MS,
				maxLoadTimeMs: MASTER_TIMEOUT_MS,
				timeoutRetry: null,
				errorRetry: null,
			},
		},
		xhrSetup: (request, url) => {
			request.open('GET', url, true);
			if (token !== null && url === address) request.setRequestHeader('Authorization', `Bearer ${token}`);
		},
	});
	hls.on(Events.ERROR, (_event, data) => {
		if (!data.fatal) return;
		if (data.type === ErrorTypes.NETWORK_ERROR) listener.onInterrupted(data.response?.code ?? 0);
		else listener.onBroken(data.error.message);
	});
	hls.attachMedia(video);
	hls.loadSource(address);
	return {
		destroy: () => hls.destroy(),
		measured: () => {
			const level = hls.levels[Math.max(0, hls.currentLevel)];
			const codecs = [level?.videoCodec, level?.audioCodec].filter(Boolean).join(', ');
			return {
				kbps: level ? Math.round((level.realBitrate || level.bitrate) / 1000) : null,
				codecs: codecs || null,
			};
		},
	};
}
