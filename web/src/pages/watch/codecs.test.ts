import { describe, expect, test } from 'vitest';
import { crc, packet, pat, withSounds } from '../../testing/programMap';
import { CodecProbe, judge } from './codecs';

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

/** Plays these bytes in pieces with a wish. Returns the sounds that a script finds in what is passed on. */
function heard(bytes: number[], wish: CodecProbe['wish'], size: number): number[] {
	const made = new CodecProbe();
	made.wish = wish;
	const passed: number[] = [];
	for (let at = 0; at < bytes.length; at += size) {
		made.push(new Uint8Array(bytes.slice(at, at + size)));
		passed.push(...made.passed);
	}
	expect(passed.length).toBe(bytes.length);
	const script = new CodecProbe();
	script.push(new Uint8Array(passed));
	return (script.found ?? []).filter((it) => it.kind === 'audio').map((it) => it.pid);
}

describe('a chosen sound', () => {
	const two = withSounds([0x100, 'deu'], [0x101, 'eng']);
	const fra = { pid: 0x101, language: 'fra' };

	test.each([
		['nothing is changed without a choice', two, null, [0x100, 0x101]],
		['the chosen one', two, { pid: 0x101, language: 'eng' }, [0x101]],
		[
			'the language, where another stream has other packet ids',
			two,
			{ pid: 0x333, language: 'eng' },
			[0x101],
		],
		['the first, where the language is missing', two, fra, [0x100]],
		['the packet id, without languages', withSounds([1, ''], [2, '']), { pid: 2, language: '' }, [2]],
		['of one language, the packet id', withSounds([1, 'eng'], [2, 'eng']), { pid: 2, language: 'eng' }, [2]],
		['nothing, where a stream has no sound', withSounds(), fra, []],
	] as const)('plays %s', (_, map, wish, expected) => {
		for (const size of [1, 100, 188, 1000]) {
			expect(heard([...pat, ...map, ...packet(0x100, [1, 2, 3])], wish, size)).toEqual(expected);
		}
	});

	test('is the one that is judged, and a change of languages is noticed', () => {
		const made = new CodecProbe();
		expect(made.push(new Uint8Array([...pat, ...two]))).toBe(true);
		expect(made.found?.map((it) => it.language)).toEqual(['', 'deu', 'eng']);
		expect([made.sound?.pid, made.playing.length]).toEqual([0x100, 3]);
		made.wish = { pid: 0x101, language: 'eng' };
		expect([made.sound?.pid, made.playing.map((it) => it.language)]).toEqual([0x101, ['', 'eng']]);
		expect(made.push(new Uint8Array([...pat, ...withSounds([0x100, 'fra'], [0x101, 'eng'])]))).toBe(true);
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
