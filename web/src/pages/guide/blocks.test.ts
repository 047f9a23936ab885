import { describe, expect, it } from 'vitest';
import { BLOCKS_MAX, GuideBlocks, type GridProgramme, type LoadBlock } from './blocks.svelte';
import { BLOCK_MS } from './axis';

const settled = () => new Promise((resolve) => setTimeout(resolve));
const timeOf = (block: number): string => new Date(block * BLOCK_MS + 1000).toISOString();
/** A programme of a second in the block with its id. */
const programme = (id: number, channels: number[]) =>
	({
		id,
		channel_ids: channels,
		start_time: timeOf(id),
		end_time: new Date(Date.parse(timeOf(id)) + 1000).toISOString(),
	}) as GridProgramme;

/** Answers one programme for each block, and notes what was asked. */
function recorded() {
	const asked: [number[], number][] = [];
	const load: LoadBlock = (channels, from) => {
		asked.push([channels, from / BLOCK_MS]);
		return Promise.resolve([programme(from / BLOCK_MS, channels)]);
	};
	return { asked, load };
}

describe('blocks of the guide', () => {
	it('are read once, and only for what is visible', async () => {
		const { asked, load } = recorded();
		const blocks = new GuideBlocks(load);
		blocks.want([[1, 2]], [7]);
		blocks.want([[1, 2]], [7]);
		expect(blocks.programmes([1, 2], 1, [7])).toBeUndefined();
		await settled();
		blocks.want([[1, 2]], [7, 8]);
		await settled();
		expect(asked).toEqual([
			[[1, 2], 7],
			[[1, 2], 8],
		]);
		expect(blocks.programmes([1, 2], 2, [7, 8])?.map((it) => it.id)).toEqual([7, 8]);
		expect(blocks.programmes([1, 2], 3, [7])).toEqual([]);
	});

	it('of the same time are read with one request, and each channel and time is kept by itself', async () => {
		const { asked, load } = recorded();
		const blocks = new GuideBlocks(load);
		blocks.want([[1, 2], [3]], [7, 8, 9]);
		await settled();
		expect(asked).toEqual([[[1, 2, 3], 7]]);
		expect([blocks.has([1, 2], [7, 8, 9]), blocks.has([3], [7, 10])]).toEqual([true, false]);
		expect(blocks.programmes([3], 3, [7])?.map((it) => it.id)).toEqual([7]);
		expect(blocks.programmes([3], 3, [8, 9])).toEqual([]);
		blocks.want([[1, 2], [3], [4]], [8, 9, 10]);
		await settled();
		expect(asked.slice(1)).toEqual([
			[[1, 2, 3], 10],
			[[4], 8],
		]);
	});

	it('that left the view are aborted, and their late answers ignored', async () => {
		const answers: (() => void)[] = [];
		const signals: AbortSignal[] = [];
		const blocks = new GuideBlocks((channels, from, __, signal) => {
			signals.push(signal);
			return new Promise((resolve) => answers.push(() => resolve([programme(from / BLOCK_MS, channels)])));
		});
		blocks.want([[1]], [7]);
		blocks.want([[1]], [9]);
		answers.forEach((it) => it());
		await settled();
		expect(signals.map((it) => it.aborted)).toEqual([true, false]);
		expect(blocks.programmes([1], 1, [7])).toBeUndefined();
		expect(blocks.programmes([1], 1, [9])).toHaveLength(1);
	});

	it('are forgotten after some, and read again after a change', async () => {
		const { asked, load } = recorded();
		const blocks = new GuideBlocks(load);
		for (let n = 0; n <= BLOCKS_MAX; n += 1) {
			blocks.want([[1]], [n]);
			await settled();
		}
		expect(blocks.programmes([1], 1, [0])).toBeUndefined();
		expect(blocks.programmes([1], 1, [1])).toHaveLength(1);
		asked.length = 0;
		blocks.refresh();
		await settled();
		expect(asked).toEqual([[[1], BLOCKS_MAX]]);
		expect(blocks.programmes([1], 1, [1])).toBeUndefined();
	});

	it('that failed are not asked for until a retry', async () => {
		let count = 0;
		const blocks = new GuideBlocks(() => {
			count += 1;
			return Promise.reject(new Error('down'));
		});
		blocks.want([[1]], [7]);
		await settled();
		expect(blocks.error).toBeInstanceOf(Error);
		blocks.want([[1]], [7]);
		await settled();
		expect(count).toBe(1);
		blocks.refresh();
		await settled();
		expect(count).toBe(2);
	});
});
