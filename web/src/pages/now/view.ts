// How the page shows channels: as cards, or as a list for many of them.

export type View = 'cards' | 'list';

const KEY = 'headwater.now';

/** Returns what was chosen in this browser. */
export function chosenView(): View {
	try {
		return localStorage.getItem(KEY) === 'list' ? 'list' : 'cards';
	} catch {
		return 'cards';
	}
}

export function rememberView(view: View): void {
	try {
		if (view === 'list') localStorage.setItem(KEY, view);
		else localStorage.removeItem(KEY);
	} catch {
		// Without storage, the address alone keeps it.
	}
}

/** Returns up to two letters that stand for a user. */
export function initialsOf(name: string): string {
	const words = name.split(/[\s._@-]+/).filter(Boolean);
	const letters =
		words.length > 1 ? words.slice(0, 2).map((it) => [...it][0] ?? '') : [...(words[0] ?? '')].slice(0, 2);
	return letters.join('').toUpperCase();
}

/** Returns size, frame rate and codecs of a picture, as far as they are known. */
export function pictureOf(
	it: {
		resolution?: string | null;
		source_fps?: number | null;
		video_codec?: string | null;
		audio_codec?: string | null;
	},
	fps: (n: number) => string,
): string {
	const size = it.resolution?.replace('x', ' × ');
	return [size, it.source_fps ? fps(it.source_fps) : null, it.video_codec, it.audio_codec]
		.filter(Boolean)
		.join(' · ');
}
