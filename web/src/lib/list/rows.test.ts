import { describe, expect, test } from 'vitest';
import { PAGE_ROWS, PagedRows, PAGES_MAX } from './rows.svelte';

interface Row {
	id: number;
	name: string;
}

const COUNT = 500_000;

/** A list on a gateway that counts the requests. */
function gateway() {
	const asked: number[] = [];
	let version = 0;
	const rows = new PagedRows<Row>({
		key: (it) => it.id,
		fetch: async (page, size, signal) => {
			asked.push(page);
			await Promise.resolve();
			signal.throwIfAborted();
			const first = (page - 1) * size;
			return {
				count: COUNT,
				results: Array.from({ length: size }, (_, i) => ({
					id: first + i,
					name: `${first + i} v${version}`,
				})),
			};
		},
	});
	const settle = async (): Promise<void> => {
		for (let i = 0; i < 10; i += 1) await Promise.resolve();
	};
	return { rows, asked, settle, change: () => (version += 1) };
}

describe('PagedRows', () => {
	test('reads only the pages around the viewport, each once', async () => {
		const { rows, asked, settle } = gateway();
		rows.want(0, 30);
		await settle();
		expect([rows.count, rows.at(29)?.id, rows.at(100)]).toEqual([COUNT, 29, undefined]);
		rows.want(250_090, 250_120);
		await settle();
		rows.want(250_090, 250_120);
		await settle();
		expect(asked).toEqual([1, 2501, 2502]);
		expect(rows.at(250_119)?.id).toBe(250_119);
	});

	test('keeps a bounded number of pages', async () => {
		const { rows, asked, settle } = gateway();
		for (let page = 0; page < PAGES_MAX + 10; page += 1) {
			rows.want(page * PAGE_ROWS, page * PAGE_ROWS + 10);
			await settle();
		}
		expect(rows.at(0)).toBeUndefined();
		expect(rows.at((PAGES_MAX + 9) * PAGE_ROWS)).toBeDefined();
		rows.want(0, 10);
		await settle();
		expect(asked.filter((it) => it === 1).length).toBe(2);
	});

	test('a refresh reads the visible pages again, and the rows stay until then', async () => {
		const { rows, asked, settle, change } = gateway();
		rows.want(500, 520);
		await settle();
		change();
		rows.refresh();
		expect(rows.at(500)?.name).toBe('500 v0');
		await settle();
		expect(rows.at(500)?.name).toBe('500 v1');
		expect(asked).toEqual([6, 6]);
	});

	test('an answered object takes the place of its row', async () => {
		const { rows, settle } = gateway();
		rows.want(0, 10);
		await settle();
		rows.update({ id: 3, name: 'new' });
		expect([rows.at(3)?.name, rows.at(4)?.name]).toEqual(['new', '4 v0']);
	});

	test('a failure is shown, and refresh tries again', async () => {
		let isDown = true;
		const rows = new PagedRows<Row>({
			key: (it) => it.id,
			fetch: async () => {
				if (isDown) throw new Error('down');
				return { count: 0, results: [] };
			},
		});
		rows.want(0, 10);
		await new Promise((done) => setTimeout(done));
		expect(rows.error).toBeInstanceOf(Error);
		isDown = false;
		rows.refresh();
		await new Promise((done) => setTimeout(done));
		expect([rows.error, rows.count]).toEqual([null, 0]);
	});
});
