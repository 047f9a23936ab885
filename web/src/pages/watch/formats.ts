// The formats in which a page plays a live channel.

import type { OutputFormat } from '../common/outputFormats';

/**
 * `mpegts` and `hls-script` are played by scripts that feed Media Source Extensions, `hls` by the browser itself, and
 * `fmp4` as one endless file.
 */
export type Format = 'mpegts' | 'hls-script' | 'hls' | 'fmp4';

/** The formats that a viewer can choose. */
export const CHOICES = ['mpegts', 'hls', 'fmp4'] as const;
export type Choice = (typeof CHOICES)[number];

/** What a browser can do. */
export interface Abilities {
	/** Media Source Extensions, which browsers of phones by Apple lack. */
	hasMediaSource: boolean;
	/** Their successor on these phones, which asks for data when it wants some. */
	hasManagedMediaSource: boolean;
	/** Whether a video element plays HLS. */
	playsHls: boolean;
	/** Whether a video element plays MP4 with H.264 and AAC. */
	playsMp4: boolean;
	/** Whether the browser is by Apple. Its own player of HLS is the best one; that of others lacks much. */
	isApple: boolean;
}

const HLS = 'application/vnd.apple.mpegurl';
const MP4 = 'video/mp4; codecs="avc1.64002a, mp4a.40.2"';

export function abilitiesOf(video: Pick<HTMLVideoElement, 'canPlayType'>): Abilities {
	return {
		hasMediaSource: typeof MediaSource !== 'undefined',
		hasManagedMediaSource: 'ManagedMediaSource' in globalThis,
		playsHls: video.canPlayType(HLS) !== '',
		playsMp4: video.canPlayType(MP4) !== '',
		isApple: /apple/i.test(navigator.vendor),
	};
}

/** The formats of the gateway that the formats of a page are. */
const OUTPUT: Record<Format, OutputFormat> = { mpegts: 'ts', 'hls-script': 'm3u8', hls: 'm3u8', fmp4: 'mp4' };

/**
 * Returns the formats to try, the best one first, of those that the user may play. MPEG-TS begins soonest and is live at
 * once; segments need no script that knows MPEG-TS, and a browser that plays HLS itself knows more codecs than its Media
 * Source Extensions.
 */
export function formatsOf(it: Abilities, allowed: readonly OutputFormat[], choice?: Choice | null): Format[] {
	const own: Format[] = it.playsHls ? ['hls'] : [];
	const script: Format[] = it.hasMediaSource || it.hasManagedMediaSource ? ['hls-script'] : [];
	const all: Format[] = [
		...(it.hasMediaSource ? (['mpegts'] as const) : []),
		...(it.isApple ? [...own, ...script] : [...script, ...own]),
		...(it.playsMp4 ? (['fmp4'] as const) : []),
	];
	const wanted = choice ? all.filter((of) => choiceOf(of) === choice) : all;
	return wanted.filter((of) => allowed.includes(OUTPUT[of]));
}

/** Reads a choice; `null` for anything else. */
export const choiceFrom = (text: string | null): Choice | null => CHOICES.find((it) => it === text) ?? null;

/** Returns how a viewer knows a format. */
export const choiceOf = (format: Format): Choice => (format === 'hls-script' ? 'hls' : format);

/** Returns the path of a live channel in a format, without credentials. */
export function pathOf(format: Format, uuid: string): string {
	const channel = encodeURIComponent(uuid);
	if (format === 'hls') return `/proxy/hls/${channel}/index.m3u8`;
	if (format === 'hls-script') return `/proxy/hls/${channel}/index.m3u8?container=fmp4&ll=1`;
	// Without a name, the address would be that of the preferred format of the user.
	return `/proxy/ts/stream/${channel}?output_format=${format}`;
}

/** Adds a parameter to a path. */
export const withParameter = (path: string, name: string, value: string): string =>
	`${path}${path.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(value)}`;

/** Adds a token to a path, for a video element, which sends no headers of ours. */
export const withToken = (path: string, token: string): string => withParameter(path, 'token', token);
