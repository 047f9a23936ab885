/** Names of the codecs in a transport stream, read from its program map (ISO/IEC 13818-1, section 2.4.4). */

/** An elementary stream. */
export interface Elementary {
	kind: 'video' | 'audio';
	/** Name for people. */
	name: string;
	/** Type for `MediaSource.isTypeSupported`; `null` if no browser plays it. */
	type: string | null;
}

const H264: Elementary = { kind: 'video', name: 'H.264', type: 'video/mp4; codecs="avc1.64002a"' };
const AC3: Elementary = { kind: 'audio', name: 'AC-3', type: 'audio/mp4; codecs="ac-3"' };
const EAC3: Elementary = { kind: 'audio', name: 'E-AC-3', type: 'audio/mp4; codecs="ec-3"' };

const BY_TYPE: Record<number, Elementary> = {
	0x01: { kind: 'video', name: 'MPEG-1 video', type: null },
	0x02: { kind: 'video', name: 'MPEG-2 video', type: null },
	0x03: { kind: 'audio', name: 'MP2', type: null },
	0x04: { kind: 'audio', name: 'MP2', type: null },
	0x0f: { kind: 'audio', name: 'AAC', type: 'audio/mp4; codecs="mp4a.40.2"' },
	0x11: { kind: 'audio', name: 'AAC (LATM)', type: 'audio/mp4; codecs="mp4a.40.2"' },
	0x1b: H264,
	0x24: { kind: 'video', name: 'H.265', type: 'video/mp4; codecs="hvc1.1.6.L120.90"' },
	0x81: AC3,
	0x87: EAC3,
};

/** Descriptors that name the codec of private data. */
const BY_DESCRIPTOR: Record<number, Elementary> = { 0x6a: AC3, 0x7a: EAC3 };

const PACKET = 188;

/** Reads the elementary streams of a transport stream. They change when another stream of the channel takes over. */
export class CodecProbe {
	#rest = new Uint8Array(0);
	#mapPid = -1;
	/** The elementary streams, once known. */
	found: Elementary[] | null = null;

	/** Takes the next bytes; returns true if the streams became known or changed. */
	push(bytes: Uint8Array): boolean {
		const before = this.found;
		const all = new Uint8Array(this.#rest.length + bytes.length);
		all.set(this.#rest);
		all.set(bytes, this.#rest.length);
		let at = 0;
		for (; at + PACKET <= all.length; at += PACKET) {
			if (all[at] !== 0x47) {
				at -= PACKET - 1;
				continue;
			}
			this.#packet(all.subarray(at, at + PACKET));
		}
		this.#rest = all.slice(at);
		return this.found !== before;
	}

	#packet(packet: Uint8Array): void {
		const byte = (i: number): number => packet[i] ?? 0;
		const pid = ((byte(1) & 0x1f) << 8) | byte(2);
		const isStart = (byte(1) & 0x40) !== 0;
		if (!isStart || (pid !== 0 && pid !== this.#mapPid)) return;
		let at = 4;
		if ((byte(3) & 0x20) !== 0) at += 1 + byte(4);
		at += 1 + byte(at);
		const end = Math.min(PACKET, at + 3 + (((byte(at + 1) & 0x0f) << 8) | byte(at + 2)) - 4);
		if (pid === 0 && byte(at) === 0x00) {
			for (let i = at + 8; i + 4 <= end; i += 4) {
				// Program 0 is the network information.
				if (((byte(i) << 8) | byte(i + 1)) !== 0) {
					this.#mapPid = ((byte(i + 2) & 0x1f) << 8) | byte(i + 3);
					return;
				}
			}
		}
		if (pid === this.#mapPid && byte(at) === 0x02) this.#map(packet, at, end);
	}

	#map(packet: Uint8Array, at: number, end: number): void {
		const byte = (i: number): number => packet[i] ?? 0;
		const found: Elementary[] = [];
		let i = at + 12 + (((byte(at + 10) & 0x0f) << 8) | byte(at + 11));
		while (i + 5 <= end) {
			const length = ((byte(i + 3) & 0x0f) << 8) | byte(i + 4);
			let codec = BY_TYPE[byte(i)];
			for (let d = i + 5; !codec && d + 2 <= Math.min(end, i + 5 + length); d += 2 + byte(d + 1)) {
				codec = BY_DESCRIPTOR[byte(d)];
			}
			if (codec) found.push(codec);
			i += 5 + length;
		}
		const names = (list: Elementary[] | null): string | undefined => list?.map((it) => it.name).join();
		if (names(found) !== names(this.found)) this.found = found;
	}
}

/** What a browser can do with a stream. */
export interface Verdict {
	/** Codecs that it cannot play at all. */
	missing: string[];
	/** Whether it plays once the sound is converted. */
	needsSound: boolean;
}

/** Judges the elementary streams; of several of a kind, the first counts, because that is the one that plays. */
export function judge(streams: Elementary[], isSupported: (type: string) => boolean): Verdict {
	const plays = (it: Elementary | undefined): boolean => !it || (it.type !== null && isSupported(it.type));
	const video = streams.find((it) => it.kind === 'video');
	const audio = streams.find((it) => it.kind === 'audio');
	const missing = [video, audio].filter((it) => !plays(it)).map((it) => it?.name ?? '');
	return { missing, needsSound: plays(video) && !plays(audio) };
}
