import { expect, test } from 'vitest';
import { SteadyClock } from './clock';
import { stampsIn } from './timeline';

const WRAP = 2 ** 33;

/** Returns a packet that begins a frame of a stream with this time stamp, in seconds. */
function frame(seconds: number, pid = 256, stream = 0xe0): number[] {
	const ticks = Math.round(seconds * 90_000) % WRAP;
	const bits = (shift: number, mask: number): number => Math.floor(ticks / 2 ** shift) & mask;
	const stamp = [
		0x21 | (bits(30, 7) << 1),
		bits(22, 0xff),
		(bits(15, 0x7f) << 1) | 1,
		bits(7, 0xff),
		(bits(0, 0x7f) << 1) | 1,
	];
	const header = [0x47, 0x40 | (pid >> 8), pid & 0xff, 0x10, 0, 0, 1, stream, 0, 0, 0x80, 0x80, 5, ...stamp];
	return [...header, ...Array.from({ length: 188 - header.length }, () => 0)];
}

/** Returns the time stamps that come out, and the jumps. */
function run(frames: number[][], piece = 1000): { stamps: number[]; jumps: number[][] } {
	const jumps: number[][] = [];
	const clock = new SteadyClock((...jump) => jumps.push(jump.map((it) => Math.round(it * 100) / 100)));
	const bytes = new Uint8Array(frames.flat());
	const stamps: number[] = [];
	for (let at = 0; at < bytes.length; at += piece) {
		const packets = clock.push(bytes.subarray(at, at + piece));
		expect(packets.length % 188).toBe(0);
		for (let n = 0; n < packets.length; n += 188) {
			// Several packets are needed to recognise one.
			const five = new Uint8Array([0, 1, 2, 3, 4].flatMap(() => [...packets.subarray(n, n + 188)]));
			stamps.push(Math.round((stampsIn(five)[0] ?? -1) * 100) / 100);
		}
	}
	return { stamps, jumps };
}

test('time stamps without a jump stay, also where they begin again', () => {
	const end = WRAP / 90_000;
	expect(run([frame(10), frame(10.04), frame(12)])).toEqual({ stamps: [10, 10.04, 12], jumps: [] });
	expect(run([frame(end - 1), frame(1)]).jumps).toEqual([]);
});

test('a jump ahead or back continues with the next picture', () => {
	expect(run([frame(10), frame(10.04), frame(15_000), frame(15_000.04)])).toEqual({
		stamps: [10, 10.04, 10.08, 10.12],
		jumps: [[0.08, 14_989.92]],
	});
	expect(run([frame(500), frame(20), frame(20.5)])).toEqual({
		stamps: [500, 500.04, 500.54],
		jumps: [[0.04, 0]],
	});
});

test('sound that jumps after the picture keeps its distance to it', () => {
	const sound = (seconds: number): number[] => frame(seconds, 257, 0xc0);
	const frames = [frame(10), sound(9.9), frame(5000), sound(9.95), sound(4999.9), frame(5000.04)];
	expect(run(frames)).toEqual({
		stamps: [10, 9.9, 10.04, 9.95, 9.94, 10.08],
		jumps: [[0.04, 4989.96]],
	});
});

test('rare subtitles do not count as a jump, and bytes between packets are left out', () => {
	const subtitle = (seconds: number): number[] => frame(seconds, 258, 0xbd);
	const seconds = Array.from({ length: 20 }, (_, n) => frame(10 + n));
	expect(run([...seconds.slice(0, 10), subtitle(19), ...seconds.slice(10), subtitle(29)]).jumps).toEqual([]);
	expect(run([frame(1), [1, 2, 3], frame(2)]).stamps).toEqual([1, 2]);
});
