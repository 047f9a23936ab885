import { describe, expect, test } from 'vitest';
import { CodecProbe, judge } from './codecs';

/** Builds a packet with a section. */
function packet(pid: number, section: number[]): number[] {
	const body = [0x47, 0x40 | (pid >> 8), pid & 0xff, 0x10, 0, ...section];
	return [...body, ...new Array<number>(188 - body.length).fill(0xff)];
}

const crc = [0, 0, 0, 0];
const pat = packet(0, [0x00, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xe0 | 0x10, 0x00, ...crc]);

function pmt(streams: [number, number[]][]): number[] {
	const loop = streams.flatMap(([type, descriptors]) => [
		type,
		0xe1,
		0,
		0xf0,
		descriptors.length,
		...descriptors,
	]);
	return packet(0x1000, [
		0x02,
		0xb0,
		9 + loop.length + 4,
		0,
		1,
		0xc1,
		0,
		0,
		0xe1,
		0,
		0xf0,
		0,
		...loop,
		...crc,
	]);
}

const probe = (bytes: number[], size = bytes.length): CodecProbe => {
	const made = new CodecProbe();
	for (let at = 0; at < bytes.length; at += size) made.push(new Uint8Array(bytes.slice(at, at + size)));
	return made;
};

describe('CodecProbe', () => {
	test('reads the codecs in pieces of any size', () => {
		for (const size of [1, 100, 188, 1000]) {
			const found = probe(
				[
					...pat,
					...pmt([
						[0x1b, []],
						[0x81, []],
					]),
				],
				size,
			).found;
			expect(found?.map((it) => it.name)).toEqual(['H.264', 'AC-3']);
		}
	});

	test('a descriptor names the codec of private data', () => {
		expect(
			probe([
				...pat,
				...pmt([
					[0x02, []],
					[0x06, [0x52, 1, 9, 0x7a, 0]],
				]),
			]).found?.map((it) => it.name),
		).toEqual(['MPEG-2 video', 'E-AC-3']);
	});

	test('bytes without a packet are skipped, and noise names nothing', () => {
		expect(probe([1, 2, 3, ...pat, ...pmt([[0x0f, []]])]).found?.map((it) => it.name)).toEqual(['AAC']);
		const noise = new CodecProbe();
		expect(noise.push(new Uint8Array(1 << 20).fill(0x47))).toBe(false);
		expect(noise.found).toBeNull();
	});

	test('another stream of the channel may have other codecs', () => {
		const made = new CodecProbe();
		expect(made.push(new Uint8Array([...pat, ...pmt([[0x0f, []]])]))).toBe(true);
		expect(made.push(new Uint8Array([...pat, ...pmt([[0x0f, []]])]))).toBe(false);
		expect(made.push(new Uint8Array([...pat, ...pmt([[0x03, []]])]))).toBe(true);
		expect(made.found?.map((it) => it.name)).toEqual(['MP2']);
	});
});

describe('judge', () => {
	const streams = (...types: [number, number[]][]) => probe([...pat, ...pmt(types)]).found ?? [];
	const plain = (type: string): boolean => type.includes('avc1') || type.includes('mp4a');

	test.each([
		[streams([0x1b, []], [0x0f, []]), { missing: [], needsSound: false }],
		[streams([0x1b, []], [0x81, []]), { missing: ['AC-3'], needsSound: true }],
		[streams([0x1b, []], [0x03, []]), { missing: ['MP2'], needsSound: true }],
		[streams([0x02, []], [0x03, []]), { missing: ['MPEG-2 video', 'MP2'], needsSound: false }],
		[streams([0x1b, []]), { missing: [], needsSound: false }],
	])('of %#', (found, expected) => {
		expect(judge(found, plain)).toEqual(expected);
	});
});
