// The sounds and subtitles of what a video element plays.

/** A sound or subtitle that a viewer can choose. */
export interface Track {
	id: string;
	/** Its name, or the name of its language; empty if it has neither. */
	name: string;
	isOn: boolean;
}

interface AudioTrack {
	id: string;
	label: string;
	language: string;
	enabled: boolean;
}

/** A part of media elements that browsers by Apple have. */
type WithSounds = HTMLVideoElement & { audioTracks?: Iterable<AudioTrack> & { length: number } };

/** Returns the name of a language by its code in the language of the page; the code itself if it is not known. */
export function languageName(code: string, locale: string): string {
	if (code === '' || code === 'und') return '';
	try {
		return new Intl.DisplayNames(locale, { type: 'language', fallback: 'code' }).of(code) ?? code;
	} catch {
		return code;
	}
}

const nameOf = (it: { label: string; language: string }, locale: string): string =>
	it.label || languageName(it.language, locale);

/** Returns the sounds that the browser itself can choose from. */
export function soundsOf(video: HTMLVideoElement, locale: string): Track[] {
	const tracks = [...((video as WithSounds).audioTracks ?? [])];
	return tracks.map((it, n) => ({ id: it.id || String(n), name: nameOf(it, locale), isOn: it.enabled }));
}

export function chooseSound(video: HTMLVideoElement, id: string): void {
	[...((video as WithSounds).audioTracks ?? [])].forEach((it, n) => {
		it.enabled = (it.id || String(n)) === id;
	});
}

const isSubtitle = (it: TextTrack): boolean => it.kind === 'subtitles' || it.kind === 'captions';
const subtitleTracks = (video: HTMLVideoElement): TextTrack[] =>
	[...(video.textTracks ?? [])].filter(isSubtitle);

/** Returns the subtitles of a video. */
export const subtitlesOf = (video: HTMLVideoElement, locale: string): Track[] =>
	subtitleTracks(video).map((it, n) => ({
		id: String(n),
		name: nameOf(it, locale),
		isOn: it.mode === 'showing',
	}));

/** Shows one of the subtitles, or none. */
export function chooseSubtitle(video: HTMLVideoElement, id: string | null): void {
	subtitleTracks(video).forEach((it, n) => {
		it.mode = String(n) === id ? 'showing' : 'disabled';
	});
}

/** Shows the first subtitle, or none if one is shown. */
export function toggleSubtitles(video: HTMLVideoElement): void {
	const isOn = subtitleTracks(video).some((it) => it.mode === 'showing');
	chooseSubtitle(video, isOn ? null : '0');
}
