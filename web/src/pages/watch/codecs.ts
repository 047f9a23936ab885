/** Names of the codecs in a transport stream, read from its program map (ISO/IEC 13818-1, section 2.4.4). */

/** An elementary stream. */
export interface Elementary {
	kind: 'video' | 'audio';
	/** Name for people. */
	name: string;
	/** Type for `MediaSource.isTypeSupported`; `null` if no browser plays it. */
	type: string | null;
}

/** An elementary stream of a program map. */
export interface FoundStream extends Elementary {
	pid: number;
	/** Code of the language; empty if the map has none. */
	language: string;
	/** Whether the script that plays takes it. It does not look into private data. */
	isTaken: boolean;
}

/** The sound that a viewer has chosen. */
export type SoundWish = Pick<FoundStream, 'pid' | 'language'>;

/** Returns the sound that plays: the wanted one, otherwise the first of its language, otherwise the first. */
function playingSound(streams: readonly FoundStream[], wish: SoundWish | null): FoundStream | undefined {
	const sounds = streams.filter((it) => it.kind === 'audio' && it.isTaken);
	const inLanguage = sounds.filter((it) => it.language === wish?.language);
	return (
		inLanguage.find((it) => it.pid === wish?.pid) ?? (wish?.language ? inLanguage[0] : undefined) ?? sounds[0]
	);
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

const LANGUAGE_DESCRIPTOR = 0x0a;
/** A type of streams that no script plays. */
const RESERVED_TYPE = 0xff;
const PACKET = 188;

/** Reads the elementary streams of a transport stream. They change when another stream of the channel takes over. */
export class CodecProbe {
	#rest = new Uint8Array(0);
	#mapPid = -1;
	/** The elementary streams, once known. */
	found: FoundStream[] | null = null;
	/** The sound to play. Without one, program maps stay as they are, and their first sound plays. */
	wish: SoundWish | null = null;
	/** The whole packets of the last call, without the sounds that are not to play. */
	passed = new Uint8Array(0);

	/** The sound that plays. */
	get sound(): FoundStream | undefined {
		return playingSound(this.found ?? [], this.wish);
	}

	/** The streams without the sounds that do not play. */
	get playing(): FoundStream[] {
		const { found, sound } = this;
		if (this.wish === null) return found ?? [];
		return (found ?? []).filter((it) => it.kind === 'video' || it === sound);
	}

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
		this.passed = all.subarray(0, at);
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
		const found: FoundStream[] = [];
		/** Places of the types of sounds. */
		const types = new Map<FoundStream, number>();
		let i = at + 12 + (((byte(at + 10) & 0x0f) << 8) | byte(at + 11));
		while (i + 5 <= end) {
			const length = ((byte(i + 3) & 0x0f) << 8) | byte(i + 4);
			const ofType = BY_TYPE[byte(i)];
			let codec = ofType;
			let language = '';
			for (let d = i + 5; d + 2 <= Math.min(end, i + 5 + length); d += 2 + byte(d + 1)) {
				codec ??= BY_DESCRIPTOR[byte(d)];
				if (byte(d) === LANGUAGE_DESCRIPTOR && language === '')
					language = letters(packet.subarray(d + 2, d + 5));
			}
			if (codec) {
				const pid = ((byte(i + 1) & 0x1f) << 8) | byte(i + 2);
				const stream = { ...codec, pid, language, isTaken: ofType !== undefined };
				found.push(stream);
				if (stream.kind === 'audio') types.set(stream, i);
			}
			i += 5 + length;
		}
		if (JSON.stringify(found) !== JSON.stringify(this.found)) this.found = found;
		if (this.wish === null) return;
		const sound = playingSound(found, this.wish);
		// The script takes the first sound that it knows, and does not look at the checksum.
		for (const [stream, place] of types)
			if (stream !== sound && stream.isTaken) packet[place] = RESERVED_TYPE;
	}
}

/** Returns the code of a language, if these bytes are one. */
function letters(bytes: Uint8Array): string {
	const text = String.fromCharCode(...bytes).toLowerCase();
	return /^[a-z]{3}$/.test(text) ? text : '';
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
