/** Times in a transport stream, and the position in the file for a time (ISO/IEC 13818-1, section 2.4.3). */
import { findPackets, PACKET } from './container';
import type { ReadBytes } from './file';

/** Time stamps per second, and the number after which they begin again. */
const TICKS = 90_000;
const WRAP = 2 ** 33;
/** Bytes that are read to find a time stamp. */
const LOOK_BYTES = 256 * 1024;
/** Reads after which the best position so far is taken. */
const LOOKS_MAX = 8;
/** Playing may begin this many seconds before the wanted time; the next picture that stands alone is there. */
const NEAR_SECONDS = 4;

/** Returns the time stamps in these bytes, in seconds, in their order. */
export function stampsIn(bytes: Uint8Array): number[] {
	const found: number[] = [];
	const first = findPackets(bytes);
	if (first < 0) return found;
	for (let at = first; at + PACKET <= bytes.length; at += PACKET) {
		const byte = (n: number): number => bytes[at + n] ?? 0;
		if (byte(0) !== 0x47) {
			const next = findPackets(bytes.subarray(at));
			if (next < 0) break;
			at += next - PACKET;
			continue;
		}
		if ((byte(1) & 0x40) === 0 || (byte(3) & 0x10) === 0) continue;
		const start = (byte(3) & 0x20) !== 0 ? 5 + byte(4) : 4;
		if (start + 14 > PACKET || byte(start) !== 0 || byte(start + 1) !== 0 || byte(start + 2) !== 1) continue;
		const stream = byte(start + 3);
		const isMedia = (stream >= 0xc0 && stream <= 0xef) || stream === 0xbd || stream === 0xfd;
		if (!isMedia || (byte(start + 7) & 0x80) === 0) continue;
		const n = start + 9;
		const ticks =
			((byte(n) >> 1) & 7) * 2 ** 30 +
			(byte(n + 1) << 22) +
			((byte(n + 2) >> 1) << 15) +
			(byte(n + 3) << 7) +
			(byte(n + 4) >> 1);
		found.push(ticks / TICKS);
	}
	return found;
}

/** Seconds from one time stamp to a later one, which may have begun again. */
const after = (start: number, at: number): number => {
	const seconds = at - start;
	// Pictures are not sent in the order in which they are shown, so that one may be a little earlier than the first.
	return seconds < -60 ? seconds + WRAP / TICKS : Math.max(0, seconds);
};

/** Where the times of a file are. */
export interface Timeline {
	size: number;
	/** Position of the first packet. */
	start: number;
	/** The first time stamp, in seconds. */
	first: number;
	/** Length in seconds. */
	duration: number;
}

/** Reads first and last time of a file. `null` if it has none that fit together. */
export async function timelineOf(read: ReadBytes, size: number, start: number): Promise<Timeline | null> {
	const head = stampsIn(await read(0, Math.min(size, LOOK_BYTES)));
	const tail = stampsIn(await read(Math.max(0, size - LOOK_BYTES), size));
	if (head.length === 0 || tail.length === 0) return null;
	const first = Math.min(...head);
	const duration = Math.max(...tail.map((it) => after(first, it)));
	return duration > 0 ? { size, start, first, duration } : null;
}

/** Returns a position from which playing reaches a time soon, and the time there. */
export async function positionAt(
	read: ReadBytes,
	timeline: Timeline,
	seconds: number,
): Promise<{ at: number; seconds: number }> {
	const { size, start, first, duration } = timeline;
	let low = { at: start, seconds: 0 };
	let high = { at: size, seconds: duration };
	for (let look = 0; look < LOOKS_MAX && seconds - low.seconds > NEAR_SECONDS; look += 1) {
		// Aims a little before the time, so that the first guess is rarely behind it. Where the rate changes much, only one
		// end would move towards the time, so that every other guess is the middle.
		const rated = (seconds - NEAR_SECONDS / 2 - low.seconds) / (high.seconds - low.seconds);
		const share = look % 2 === 0 ? rated : 0.5;
		const guess = low.at + share * (high.at - low.at);
		const at = start + Math.max(0, Math.floor((guess - start) / PACKET)) * PACKET;
		if (at <= low.at || at >= high.at) break;
		const stamp = stampsIn(await read(at, Math.min(size, at + LOOK_BYTES)))[0];
		if (stamp === undefined) break;
		const found = { at, seconds: after(first, stamp) };
		if (found.seconds > seconds) {
			if (found.seconds >= high.seconds) break;
			high = found;
		} else {
			if (found.seconds < low.seconds) break;
			low = found;
		}
	}
	return low;
}
