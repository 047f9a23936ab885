import { describe, expect, it } from 'vitest';
import { BATCH_SIZE, batchesOf, chunks, idsOf, runBatches, type Batch, type UndoHandle } from './bulk';

const numbers = (n: number) => Array.from({ length: n }, (_, it) => it + 1);
const handle = (id: number): UndoHandle => ({ id, url: `/api/channels/undo/${id}/`, expires_at: '' });
const never = () => Promise.reject(new Error('ids were read'));

it('chunks keep the order and the rest', () => {
	expect(chunks([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
	expect(chunks([], 2)).toEqual([]);
});

describe('batchesOf', () => {
	it('sends chosen ids', async () => {
		expect(await batchesOf({ ids: [3, 1] }, 2, never)).toEqual([{ ids: [3, 1] }]);
	});

	it('sends the filters with the exceptions while the API takes as many rows', async () => {
		const selected = { filter: { search: 'bbc' }, except: [9] };
		expect(await batchesOf(selected, 10_000, never)).toEqual([selected]);
	});

	it('reads the ids of a larger selection and sends them in batches', async () => {
		const read = (filter: object) => {
			expect(filter).toEqual({ search: 'bbc' });
			return Promise.resolve(numbers(12_001));
		};
		const batches = await batchesOf({ filter: { search: 'bbc' }, except: [2] }, 12_000, read);
		const ids = batches.map((it) => ('ids' in it ? it.ids : []));
		expect(ids.map((it) => it.length)).toEqual([BATCH_SIZE, BATCH_SIZE, 2_000]);
		expect(ids.flat()).not.toContain(2);
	});
});

it('the ids of a selection keep the order of the list', async () => {
	expect(await idsOf({ ids: [3, 1] }, never)).toEqual([3, 1]);
	expect(await idsOf({ filter: {}, except: [2] }, () => Promise.resolve([3, 2, 1]))).toEqual([3, 1]);
});

describe('runBatches', () => {
	const batches: Batch[] = [{ ids: [1] }, { ids: [2] }, { ids: [3] }];

	it('undoes in reverse order', async () => {
		let n = 0;
		const seen: number[] = [];
		const send = () => Promise.resolve({ undo: n++ === 1 ? null : handle(n) });
		const outcome = await runBatches(batches, send, (done) => seen.push(done));
		expect(outcome.undo.map((it) => it.id)).toEqual([3, 1]);
		expect(outcome.error).toBeNull();
		expect(seen).toEqual([0, 1, 2, 3]);
	});

	it('ends with the first failure and keeps the finished batches', async () => {
		const sent: Batch[] = [];
		const send = (batch: Batch) => {
			sent.push(batch);
			return sent.length === 2 ? Promise.reject(new Error('full')) : Promise.resolve({ undo: handle(1) });
		};
		const outcome = await runBatches(batches, send);
		expect(outcome.error).toEqual(new Error('full'));
		expect(outcome.undo).toEqual([handle(1)]);
		expect(sent.length).toBe(2);
	});
});
