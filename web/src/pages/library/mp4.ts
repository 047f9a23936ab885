/** Names of the codecs in an MP4 file, read from its sample descriptions (ISO/IEC 14496-12, section 8.5.2). */
import type { Elementary } from '../watch/codecs';
import type { ReadBytes } from './file';

/** Boxes that are looked at; a file with more is not read further. */
const BOXES_MAX = 400;
/** Bytes of a sample description that are read. */
const DESCRIPTION_BYTES = 1024;

interface Box {
	type: string;
	/** The content, without the header. */
	from: number;
	until: number;
}

const u32 = (bytes: Uint8Array, at: number): number =>
	(bytes[at] ?? 0) * 0x1000000 +
	(((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0));
const fourcc = (bytes: Uint8Array, at: number): string => String.fromCharCode(...bytes.subarray(at, at + 4));
const hex = (n: number | undefined): string => (n ?? 0).toString(16).padStart(2, '0');

const video = (name: string, codec: string | null): Elementary => ({
	kind: 'video',
	name,
	type: codec && `video/mp4; codecs="${codec}"`,
});
const audio = (name: string, codec: string | null): Elementary => ({
	kind: 'audio',
	name,
	type: codec && `audio/mp4; codecs="${codec}"`,
});

const KNOWN: Record<string, Elementary> = {
	hvc1: video('H.265', 'hvc1.1.6.L120.90'),
	hev1: video('H.265', 'hev1.1.6.L120.90'),
	dvh1: video('Dolby Vision', 'dvh1.05.06'),
	dvhe: video('Dolby Vision', 'dvhe.05.06'),
	av01: video('AV1', 'av01.0.08M.08'),
	vp08: video('VP8', 'vp08.00.10.08'),
	vp09: video('VP9', 'vp09.00.10.08'),
	mp4v: video('MPEG-4 Part 2', 'mp4v.20.9'),
	'ac-3': audio('AC-3', 'ac-3'),
	'ec-3': audio('E-AC-3', 'ec-3'),
	'ac-4': audio('AC-4', 'ac-4.02.01.03'),
	dtsc: audio('DTS', null),
	dtsh: audio('DTS-HD', null),
	dtsl: audio('DTS-HD', null),
	dtse: audio('DTS', null),
	fLaC: audio('FLAC', 'flac'),
	Opus: audio('Opus', 'opus'),
	alac: audio('ALAC', 'alac'),
	'.mp3': audio('MP3', 'mp3'),
};

/** Returns the codec of a sample entry, which begins at `at` with its length. */
function codecOf(kind: 'video' | 'audio', bytes: Uint8Array, at: number): Elementary {
	const type = fourcc(bytes, at + 4);
	if (type === 'avc1' || type === 'avc3') {
		const config = [...bytes.keys()].find((n) => n > at && fourcc(bytes, n) === 'avcC');
		const profile =
			config === undefined
				? '64002a'
				: hex(bytes[config + 5]) + hex(bytes[config + 6]) + hex(bytes[config + 7]);
		return video('H.264', `${type}.${profile}`);
	}
	if (type === 'mp4a') {
		// The configuration says which of several codecs it is; its type follows the tag 4 and its length.
		const config = [...bytes.keys()].find((n) => n > at && fourcc(bytes, n) === 'esds');
		const tag = config === undefined ? -1 : bytes.indexOf(4, config + 8);
		let object = tag < 0 ? -1 : tag + 1;
		while (object >= 0 && object < bytes.length && ((bytes[object] ?? 0) & 0x80) !== 0) object += 1;
		const id = object < 0 ? 0x40 : bytes[object + 1];
		if (id === 0x69 || id === 0x6b) return audio('MP3', 'mp3');
		if (id === 0xa5) return audio('AC-3', 'ac-3');
		if (id === 0xa6) return audio('E-AC-3', 'ec-3');
		if (id === 0xa9) return audio('DTS', null);
		return audio('AAC', 'mp4a.40.2');
	}
	return KNOWN[type] ?? { kind, name: type.trim(), type: null };
}

class Reader {
	#read: ReadBytes;
	#left = BOXES_MAX;

	constructor(read: ReadBytes) {
		this.#read = read;
	}

	/** Returns the boxes between two positions. */
	async *boxes(from: number, until: number): AsyncGenerator<Box> {
		let at = from;
		while (at + 8 <= until && this.#left > 0) {
			this.#left -= 1;
			const head = await this.#read(at, at + 16);
			if (head.length < 8) return;
			let size = u32(head, 0);
			let header = 8;
			if (size === 1) {
				size = u32(head, 8) * 2 ** 32 + u32(head, 12);
				header = 16;
			} else if (size === 0) size = until - at;
			if (size < header) return;
			yield { type: fourcc(head, 4), from: at + header, until: Math.min(until, at + size) };
			at += size;
		}
	}

	/** Returns the first box of this type in another one. */
	async find(type: string, inside: Box): Promise<Box | null> {
		for await (const box of this.boxes(inside.from, inside.until)) if (box.type === type) return box;
		return null;
	}

	content(box: Box): Promise<Uint8Array> {
		return this.#read(box.from, Math.min(box.until, box.from + DESCRIPTION_BYTES));
	}
}

async function codecsOfTrack(reader: Reader, track: Box): Promise<Elementary[]> {
	const media = await reader.find('mdia', track);
	const handler = media && (await reader.find('hdlr', media));
	if (!media || !handler) return [];
	const kind = { vide: 'video', soun: 'audio' }[fourcc(await reader.content(handler), 8)] as
		'video' | 'audio' | undefined;
	const info = kind && (await reader.find('minf', media));
	const table = info && (await reader.find('stbl', info));
	const descriptions = table && (await reader.find('stsd', table));
	if (!kind || !descriptions) return [];
	const bytes = await reader.content(descriptions);
	return bytes.length < 16 ? [] : [codecOf(kind, bytes, 8)];
}

/** Reads the codecs of a file; an empty list if it does not say them. */
export async function codecsOfMp4(read: ReadBytes, size: number): Promise<Elementary[]> {
	const reader = new Reader(read);
	const found: Elementary[] = [];
	for await (const box of reader.boxes(0, size)) {
		if (box.type !== 'moov') continue;
		for await (const track of reader.boxes(box.from, box.until)) {
			if (track.type === 'trak') found.push(...(await codecsOfTrack(reader, track)));
		}
		break;
	}
	return found;
}
