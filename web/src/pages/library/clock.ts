/**
 * One clock for a transport stream whose time stamps jump: at gaps, and where an archive is followed by the live channel.
 * A player would show a still picture, or fail, for as long as the jump.
 */
import { PACKET } from './container';

/** Time stamps per second, and the number after which they begin again (ISO/IEC 13818-1, section 2.4.3.7). */
const TICKS = 90_000;
const WRAP = 2 ** 33;
/** A longer step of the time stamps of a stream is a jump, in ticks. */
const JUMP = 3 * TICKS;
/** Length of the picture before a jump, in ticks. */
const PICTURE = TICKS / 25;

/** Called for each jump: the time in the shown stream, and how far the time stamps went ahead, both in seconds. */
export type OnJump = (at: number, ahead: number) => void;

/** Steps from one time stamp to another; negative if that is earlier. */
const step = (from: number, to: number): number => {
	const ticks = (((to - from) % WRAP) + WRAP) % WRAP;
	return ticks < WRAP / 2 ? ticks : ticks - WRAP;
};

/** Reads the 33 bits of a time stamp. */
function stampAt(packet: Uint8Array, at: number): number {
	const byte = (n: number): number => packet[at + n] ?? 0;
	return (
		((byte(0) >> 1) & 7) * 2 ** 30 +
		byte(1) * 2 ** 22 +
		(byte(2) >> 1) * 2 ** 15 +
		byte(3) * 2 ** 7 +
		(byte(4) >> 1)
	);
}

/** Moves a time stamp. Its first four bits and its marker bits stay. */
function moveStamp(packet: Uint8Array, at: number, ticks: number): void {
	const moved = (((stampAt(packet, at) + ticks) % WRAP) + WRAP) % WRAP;
	const bits = (shift: number, mask: number): number => Math.floor(moved / 2 ** shift) & mask;
	packet[at] = ((packet[at] ?? 0) & 0xf1) | (bits(30, 7) << 1);
	packet[at + 1] = bits(22, 0xff);
	packet[at + 2] = (bits(15, 0x7f) << 1) | 1;
	packet[at + 3] = bits(7, 0xff);
	packet[at + 4] = (bits(0, 0x7f) << 1) | 1;
}

/** Rewrites the time stamps of a transport stream so that they never jump. */
export class SteadyClock {
	#rest = new Uint8Array(0);
	#onJump: OnJump;
	/** Ticks that are added, and those before the last jump: streams do not jump at the same packet. */
	#shift = 0;
	#before = 0;
	/** The first and the last written time stamp, and the last one of each stream. */
	#first: number | null = null;
	#last = 0;
	#lastOf = new Map<number, number>();

	constructor(onJump: OnJump) {
		this.#onJump = onJump;
	}

	/** Takes the next bytes; returns the whole packets so far. */
	push(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
		const all = new Uint8Array(this.#rest.length + bytes.length);
		all.set(this.#rest);
		all.set(bytes, this.#rest.length);
		let [at, length] = [0, 0];
		while (at + PACKET <= all.length) {
			if (all[at] !== 0x47) {
				at += 1;
				continue;
			}
			all.copyWithin(length, at, at + PACKET);
			this.#packet(all.subarray(length, length + PACKET));
			at += PACKET;
			length += PACKET;
		}
		this.#rest = all.slice(at);
		return all.slice(0, length);
	}

	#packet(packet: Uint8Array): void {
		const byte = (n: number): number => packet[n] ?? 0;
		if ((byte(1) & 0x40) === 0 || (byte(3) & 0x10) === 0) return;
		const start = (byte(3) & 0x20) !== 0 ? 5 + byte(4) : 4;
		if (start + 19 > PACKET || byte(start) !== 0 || byte(start + 1) !== 0 || byte(start + 2) !== 1) return;
		const stream = byte(start + 3);
		const isMedia = stream >= 0xc0 && stream <= 0xef;
		if (!isMedia && stream !== 0xbd && stream !== 0xfd) return;
		const flags = byte(start + 7) >> 6;
		if (flags < 2) return;
		const [shown, decoded] = [start + 9, start + 14];
		// Pictures are sent in the order in which they are decoded.
		const stamp = stampAt(packet, flags === 3 ? decoded : shown);
		// Subtitles, among others, have long steps, which do not count as jumps.
		const shift = isMedia ? this.#shiftOf(((byte(1) & 0x1f) << 8) | byte(2), stamp) : this.#shift;
		if (shift === 0) return;
		moveStamp(packet, shown, shift);
		if (flags === 3) moveStamp(packet, decoded, shift);
	}

	/** Returns the ticks to add to a time stamp of a stream. */
	#shiftOf(pid: number, stamp: number): number {
		const last = this.#lastOf.get(pid) ?? this.#last;
		const fits = (shift: number): boolean => Math.abs(step(last, stamp + shift)) <= JUMP;
		let shift = this.#shift;
		if (this.#first === null) this.#first = stamp;
		else if (!fits(shift)) {
			if (fits(this.#before)) shift = this.#before;
			else {
				const begin = this.#last + PICTURE;
				const ahead = step(begin, stamp + this.#shift);
				[this.#before, this.#shift] = [this.#shift, step(stamp, begin)];
				shift = this.#shift;
				this.#onJump(step(this.#first, begin) / TICKS, Math.max(0, ahead) / TICKS);
			}
		}
		const written = stamp + shift;
		this.#lastOf.set(pid, written);
		if (this.#lastOf.size === 1 || step(this.#last, written) > 0) this.#last = written;
		return shift;
	}
}
