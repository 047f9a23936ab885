import { afterEach, describe, expect, test, vi } from 'vitest';
import { containerOf, findPackets, HEAD_BYTES } from './container';
import { pathOf, RemoteFile, type ReadBytes } from './file';
import { codecsOfMp4 } from './mp4';
import { positionAt, stampsIn, timelineOf } from './timeline';

const text = (it: string): number[] => [...it].map((char) => char.charCodeAt(0));
const u32 = (n: number): number[] => [(n / 0x1000000) & 0xff, (n >> 16) & 0xff, (n >> 8) & 0xff, n & 0xff];
const box = (type: string, ...content: number[][]): number[] => {
	const body = content.flat();
	return [...u32(8 + body.length), ...text(type), ...body];
};
const zeros = (n: number): number[] => new Array<number>(n).fill(0);

/** Reads bytes of an array, and counts how many of them. */
function reading(bytes: Uint8Array): { read: ReadBytes; asked: () => number; reads: () => number } {
	let [asked, reads] = [0, 0];
	return {
		read: async (from, until) => {
			reads += 1;
			asked += Math.max(0, Math.min(until, bytes.length) - from);
			return bytes.subarray(from, until);
		},
		asked: () => asked,
		reads: () => reads,
	};
}

/** Writes a packet with the beginning of a picture that is shown at a time. */
function picture(seconds: number): number[] {
	const ticks = Math.round(seconds * 90_000) % 2 ** 33;
	const high = Math.floor(ticks / 2 ** 30);
	const stamp = [
		0x21 | (high << 1),
		(ticks >> 22) & 0xff,
		((ticks >> 14) & 0xfe) | 1,
		(ticks >> 7) & 0xff,
		((ticks << 1) & 0xfe) | 1,
	];
	const head = [0x47, 0x41, 0x00, 0x10, 0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, ...stamp];
	return [...head, ...zeros(188 - head.length)];
}
const filler = [0x47, 0x01, 0x00, 0x10, ...zeros(184)];

/** A transport stream with a picture per second; `packets` are those between second `n` and the next. */
function stream(seconds: number, begin: number, packets: (n: number) => number): Uint8Array {
	const all: number[][] = [];
	for (let n = 0; n <= seconds; n += 1) {
		all.push(picture(begin + n));
		for (let i = 1; i < packets(n); i += 1) all.push(filler);
	}
	const bytes = new Uint8Array(all.length * 188);
	all.forEach((it, n) => bytes.set(it, n * 188));
	return bytes;
}

describe('containerOf', () => {
	test.each([
		['an MP4 file', box('ftyp', text('isom')), 'mp4', 'MP4'],
		['a WebM file', [0x1a, 0x45, 0xdf, 0xa3, ...text('....webm')], 'native', 'WebM'],
		['a Matroska file', [0x1a, 0x45, 0xdf, 0xa3, ...text('....matroska')], 'unknown', 'Matroska (MKV)'],
		['an AVI file', [...text('RIFF'), ...u32(9), ...text('AVI LIST')], 'unknown', 'AVI'],
		['a transport stream', [...filler, ...filler, ...filler, ...filler], 'ts', 'MPEG-TS'],
		['noise before packets', [1, 2, 3, ...filler, ...filler, ...filler, ...filler, 0], 'ts', 'MPEG-TS'],
		['a web page', text('<html><body>no such film</body></html>'), 'unknown', ''],
		['nothing', [], 'unknown', ''],
	])('recognises %s', (_, bytes, kind, name) => {
		const found = containerOf(new Uint8Array(bytes));
		expect([found.kind, found.name]).toEqual([kind, name]);
	});

	test('says where the packets begin', () => {
		const bytes = new Uint8Array([1, 2, 3, ...filler, ...filler, ...filler, ...filler, 0]);
		expect(containerOf(bytes).start).toBe(3);
		expect(findPackets(new Uint8Array(HEAD_BYTES).fill(1))).toBe(-1);
	});
});

describe('codecsOfMp4', () => {
	const entry = (type: string, ...more: number[][]): number[] => box(type, zeros(78), ...more);
	const track = (handler: string, sample: number[]): number[] =>
		box(
			'trak',
			box('tkhd', zeros(84)),
			box(
				'mdia',
				box('hdlr', zeros(8), text(handler), zeros(12)),
				box('minf', box('stbl', box('stsd', zeros(4), u32(1), sample), box('stts', zeros(200_000)))),
			),
		);
	const aac = box('mp4a', zeros(28), box('esds', zeros(4), [3, 0x19, 0, 0, 0, 4, 0x11, 0x40, 0x15]));
	const h264 = entry('avc1', box('avcC', [1, 0x4d, 0x40, 0x1f]));

	test('reads the codecs of a file whose description is at its end, without reading the film', async () => {
		const moov = box(
			'moov',
			box('mvhd', zeros(100)),
			track('vide', h264),
			track('soun', aac),
			track('text', entry('tx3g')),
		);
		const bytes = new Uint8Array([...box('ftyp', text('isom')), ...box('mdat', zeros(3_000_000)), ...moov]);
		const { read, asked } = reading(bytes);
		const found = await codecsOfMp4(read, bytes.length);
		expect(found.map((it) => it.name)).toEqual(['H.264', 'AAC']);
		expect(found[0]?.type).toBe('video/mp4; codecs="avc1.4d401f"');
		expect(asked()).toBeLessThan(20_000);
	});

	test.each([
		['hvc1', 'H.265'],
		['mp4v', 'MPEG-4 Part 2'],
		['abcd', 'abcd'],
	])('names %s', async (type, name) => {
		const bytes = new Uint8Array(
			box('moov', track('vide', entry(type)), track('soun', box('ec-3', zeros(28)))),
		);
		const found = await codecsOfMp4(reading(bytes).read, bytes.length);
		expect(found.map((it) => it.name)).toEqual([name, 'E-AC-3']);
	});

	test('damaged lengths end the reading', async () => {
		for (const bytes of [
			[...u32(4), ...text('moov')],
			[...u32(1), ...text('free'), ...zeros(8)],
			[...u32(0), ...text('moov'), ...u32(2), ...text('trak')],
			new Array<number>(40_000).fill(8).map((_, n) => (n % 8 === 3 ? 8 : 0)),
		]) {
			const { read, reads } = reading(new Uint8Array(bytes));
			expect(await codecsOfMp4(read, bytes.length)).toEqual([]);
			expect(reads()).toBeLessThan(500);
		}
	});
});

describe('the times of a transport stream', () => {
	test('first and last time make the length, also where the time stamps begin again', async () => {
		for (const begin of [0, 1000, 2 ** 33 / 90_000 - 100]) {
			const bytes = stream(600, begin, () => 30);
			const found = await timelineOf(reading(bytes).read, bytes.length, 0);
			expect(found?.duration).toBeCloseTo(600, 3);
		}
		expect(await timelineOf(reading(new Uint8Array(1000)).read, 1000, 0)).toBeNull();
	});

	test('a time is found in few reads, a little before it, whatever the rate', async () => {
		// The rate changes much: the first minutes are small, those in the middle large.
		const bytes = stream(1800, 5000, (n) => (n < 600 ? 4 : n < 1200 ? 60 : 12));
		const { read, reads } = reading(bytes);
		const timeline = await timelineOf(read, bytes.length, 0);
		if (!timeline) throw new Error('no times');
		for (const wanted of [1, 30, 599, 700, 1234.5, 1790]) {
			const before = reads();
			const found = await positionAt(read, timeline, wanted);
			expect(reads() - before).toBeLessThanOrEqual(8);
			expect(found.at % 188).toBe(0);
			const there = (stampsIn(bytes.subarray(found.at))[0] ?? 0) - 5000;
			expect(found.seconds).toBeCloseTo(there, 3);
			expect(wanted - there).toBeGreaterThanOrEqual(0);
			expect(wanted - there).toBeLessThan(60);
		}
	});

	test('packets between damaged bytes are read', () => {
		const bytes = new Uint8Array([
			...picture(10),
			...filler,
			...filler,
			...filler,
			...zeros(50),
			...picture(11),
			...filler,
			...filler,
			...filler,
			...filler,
		]);
		expect(stampsIn(bytes)).toEqual([10, 11]);
	});
});

describe('RemoteFile', () => {
	afterEach(() => vi.unstubAllGlobals());

	/** A host that answers ranges of a file. */
	function host(size: number, hasRanges = true): { asked: string[] } {
		const asked: string[] = [];
		vi.stubGlobal('fetch', async (_: URL, init: { headers: { Range: string } }) => {
			asked.push(init.headers.Range);
			const [from = 0, last = 0] = init.headers.Range.replace('bytes=', '').split('-').map(Number);
			if (!hasRanges) return new Response(new Uint8Array(size).map((_, n) => n & 0xff));
			if (from >= size) return new Response(null, { status: 416 });
			const until = Math.min(last + 1, size);
			const headers = { 'Content-Range': `bytes ${from}-${until - 1}/${size}` };
			const body = new Uint8Array(until - from).map((_, n) => (from + n) & 0xff);
			return new Response(body, { status: 206, headers });
		});
		return { asked };
	}
	const file = () => new RemoteFile('/proxy/vod/movie/1?token=t', new AbortController().signal);

	test('neighbouring reads need one request, and the length is known afterwards', async () => {
		const { asked } = host(1_000_000);
		const made = file();
		expect([...(await made.read(0, 4))]).toEqual([0, 1, 2, 3]);
		expect([...(await made.read(300, 302))]).toEqual([44, 45]);
		expect(asked).toEqual(['bytes=0-65535']);
		expect(made.size).toBe(1_000_000);
		expect((await made.read(999_990, 1_000_050)).length).toBe(10);
		expect((await made.read(2_000_000, 2_000_001)).length).toBe(0);
		expect(asked).toHaveLength(2);
	});

	test('of a file without ranges only the beginning is read', async () => {
		host(200_000, false);
		const made = file();
		expect((await made.read(0, 10)).length).toBe(10);
		expect(made.size).toBeNull();
		expect((await made.read(190_000, 190_010)).length).toBe(0);
	});

	test('a refusal has the message of the gateway', async () => {
		const body = JSON.stringify({ detail: 'All connections of the account are in use.' });
		vi.stubGlobal('fetch', async () => new Response(body, { status: 503 }));
		const refusal = { status: 503, message: 'All connections of the account are in use.' };
		await expect(file().read(0, 1)).rejects.toMatchObject(refusal);
	});

	test('the address is one of this page, with the version', () => {
		const address = 'http://10.0.0.2:9192/behind/proxy/vod/movie/1?token=t';
		const version = { m3u_account_id: 2, stream_id: 'a b' };
		expect(pathOf(address, version)).toBe('/proxy/vod/movie/1?token=t&m3u_account_id=2&stream_id=a+b');
	});
});
