import type mpegts from 'mpegts.js';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { PACKET } from './container';
import { loaderFrom } from './parts';

/** Packets without time stamps; the second byte of each is its number. */
const packets = (from: number, to: number): Uint8Array =>
	new Uint8Array(
		Array.from({ length: to - from }, (_, n) => [
			0x47,
			0x1f,
			0xff,
			0x10,
			...Array(PACKET - 4).fill(from + n),
		]).flat(),
	);

describe('a file that grows', () => {
	afterEach(() => {
		vi.unstubAllGlobals();
		vi.useRealTimers();
	});

	test('is followed without asking behind its end, and no byte comes twice', async () => {
		vi.useFakeTimers();
		// The lengths of the file at each request, in packets; the last length is read twice, before and after the end.
		const lengths = [2, 2, 5, 5];
		const asked: string[] = [];
		vi.stubGlobal('fetch', async (_: URL, init: { headers: { Range?: string } }) => {
			const file = packets(0, lengths[asked.length] ?? 0);
			const from = Number(/\d+/.exec(init.headers.Range ?? '0')?.[0]);
			asked.push(init.headers.Range ?? 'whole');
			if (from >= file.length) return new Response(null, { status: 416 });
			return new Response(file.slice(from), { status: from > 0 ? 206 : 200 });
		});
		const failures: unknown[] = [];
		const Loader = loaderFrom(0, {
			onFailure: (error) => failures.push(error),
			onJump: () => {},
			isWanted: () => true,
			isGrowing: () => asked.length < lengths.length - 1,
		});
		const loader = new Loader({} as mpegts.SeekHandler, {} as mpegts.Config);
		const read: number[] = [];
		loader.onDataArrival = (bytes) => read.push(...new Uint8Array(bytes as ArrayBuffer));
		const end = new Promise<number>((done) => {
			loader.onComplete = (_, last) => done(last);
		});
		loader.open({ url: 'http://headwater/file' } as mpegts.MediaSegment, { from: 0, to: -1 });
		await vi.runAllTimersAsync();
		expect(await end).toBe(5 * PACKET - 1);
		expect(read).toEqual([...packets(0, 5)]);
		expect(asked).toEqual(['whole', 'bytes=375-', 'bytes=375-', 'bytes=939-']);
		expect(failures).toEqual([]);
	});
});
