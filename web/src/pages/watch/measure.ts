// Figures of what plays.

/** What a script that plays measures. */
export interface Measured {
	/** Rate of what arrives, in kilobits per second. */
	kbps: number | null;
	codecs: string | null;
}

/** Returns how much is buffered after the picture, in seconds. */
export function aheadOf(video: Pick<HTMLVideoElement, 'buffered' | 'currentTime'>): number {
	const { buffered, currentTime } = video;
	for (let n = 0; n < buffered.length; n += 1) {
		const isHere = buffered.start(n) <= currentTime && currentTime <= buffered.end(n);
		if (isHere) return Math.round((buffered.end(n) - currentTime) * 10) / 10;
	}
	return 0;
}

/** Times of the last bytes that are counted, in milliseconds. */
const SPAN_MS = 5_000;

/** Measures the rate of what arrives over some seconds. */
export class RateMeter {
	#pieces: { at: number; bytes: number }[] = [];

	add(bytes: number, at = performance.now()): void {
		this.#pieces.push({ at, bytes });
		this.#forget(at);
	}

	/** The rate in kilobits per second; `null` before a second has passed. */
	kbps(now = performance.now()): number | null {
		this.#forget(now);
		const first = this.#pieces[0];
		if (!first || now - first.at < 1000) return null;
		const bytes = this.#pieces.reduce((sum, it) => sum + it.bytes, 0);
		return Math.round((bytes * 8) / (now - first.at));
	}

	#forget(now: number): void {
		const from = now - SPAN_MS;
		let old = 0;
		while (old < this.#pieces.length && (this.#pieces[old]?.at ?? now) < from) old += 1;
		if (old > 0) this.#pieces.splice(0, old);
	}
}
