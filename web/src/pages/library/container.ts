/** The kind of a file, from its first bytes. */
export interface Container {
	/** What plays it: the browser itself, our reader of transport streams, or nothing. */
	kind: 'native' | 'mp4' | 'ts' | 'unknown';
	/** Name for people. */
	name: string;
	/** Position of the first packet of a transport stream. */
	start: number;
}

/** Bytes that are needed to recognise a file. */
export const HEAD_BYTES = 4096;
/** Bytes of a packet of a transport stream. */
export const PACKET = 188;
/** Packets that must follow each other. */
const PACKETS = 4;
const SYNC = 0x47;

const ascii = (bytes: Uint8Array, from: number, until: number): string =>
	String.fromCharCode(...bytes.subarray(from, until));

const startsWith = (bytes: Uint8Array, ...wanted: number[]): boolean =>
	wanted.every((it, n) => bytes[n] === it);

/** Boxes with which MP4 and QuickTime files begin. */
const MP4_BOXES = ['ftyp', 'moov', 'mdat', 'free', 'skip', 'wide', 'pnot', 'styp'];

/** Returns the position of the first packet of a transport stream; -1 without one. */
export function findPackets(bytes: Uint8Array, packet = PACKET): number {
	for (let at = 0; at < packet && at + packet * (PACKETS - 1) < bytes.length; at += 1) {
		let n = 0;
		while (n < PACKETS && bytes[at + n * packet] === SYNC) n += 1;
		if (n === PACKETS) return at;
	}
	return -1;
}

const native = (name: string): Container => ({ kind: 'native', name, start: 0 });
const unknown = (name: string): Container => ({ kind: 'unknown', name, start: 0 });

/** Recognises a file by its first bytes. */
export function containerOf(bytes: Uint8Array): Container {
	if (MP4_BOXES.includes(ascii(bytes, 4, 8))) return { kind: 'mp4', name: 'MP4', start: 0 };
	if (startsWith(bytes, 0x1a, 0x45, 0xdf, 0xa3)) {
		const isWebm = ascii(bytes, 0, Math.min(64, bytes.length)).includes('webm');
		return isWebm ? native('WebM') : unknown('Matroska (MKV)');
	}
	if (ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 12) === 'AVI ') return unknown('AVI');
	if (ascii(bytes, 0, 3) === 'FLV') return unknown('Flash video (FLV)');
	if (startsWith(bytes, 0x30, 0x26, 0xb2, 0x75)) return unknown('Windows Media (WMV)');
	if (startsWith(bytes, 0, 0, 1, 0xba)) return unknown('MPEG program stream');
	if (ascii(bytes, 0, 4) === 'OggS') return native('Ogg');
	const start = findPackets(bytes);
	if (start >= 0) return { kind: 'ts', name: 'MPEG-TS', start };
	// Each packet has a time of four bytes before it.
	return unknown(findPackets(bytes, 192) >= 0 ? 'M2TS' : '');
}
