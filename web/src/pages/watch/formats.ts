// The formats in which a page plays a live channel.

/** `hls` is played by the browser itself, `mpegts` by a script that feeds Media Source Extensions, `fmp4` as one endless file. */
export type Format = 'mpegts' | 'hls' | 'fmp4';

/** What a browser can do. */
export interface Abilities {
	/** Media Source Extensions, which browsers of phones by Apple lack. */
	hasMediaSource: boolean;
	/** Whether a video element plays HLS. */
	playsHls: boolean;
	/** Whether a video element plays MP4 with H.264 and AAC. */
	playsMp4: boolean;
}

const HLS = 'application/vnd.apple.mpegurl';
const MP4 = 'video/mp4; codecs="avc1.64002a, mp4a.40.2"';

export function abilitiesOf(video: Pick<HTMLVideoElement, 'canPlayType'>): Abilities {
	return {
		hasMediaSource: typeof MediaSource !== 'undefined',
		playsHls: video.canPlayType(HLS) !== '',
		playsMp4: video.canPlayType(MP4) !== '',
	};
}

/**
 * Returns the formats to try, the best one first. MPEG-TS begins soonest and is live at once; a browser that plays HLS
 * itself knows more codecs than its Media Source Extensions.
 */
export function formatsOf(it: Abilities): Format[] {
	if (it.hasMediaSource) return it.playsHls ? ['mpegts', 'hls'] : ['mpegts'];
	if (it.playsHls) return ['hls'];
	return it.playsMp4 ? ['fmp4'] : [];
}

/** Returns the path of a live channel in a format, without credentials. */
export function pathOf(format: Format, uuid: string): string {
	const channel = encodeURIComponent(uuid);
	if (format === 'hls') return `/proxy/hls/${channel}/index.m3u8`;
	return format === 'fmp4' ? `/proxy/ts/stream/${channel}?output_format=fmp4` : `/proxy/ts/stream/${channel}`;
}

/** Adds a token to a path, for a video element, which sends no headers of ours. */
export const withToken = (path: string, token: string): string =>
	`${path}${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(token)}`;
