import { expect, test } from 'vitest';
import { Selection } from './selection.svelte';

test('a selection is some ids, or everything that matches except some', () => {
	const it = new Selection();
	expect(it.isEmpty).toBe(true);
	it.toggle(7);
	it.put(8, true);
	it.put(8, true);
	expect([it.has(7), it.has(9), it.size(100)]).toEqual([true, false, 2]);
	expect(it.body({ search: 'bbc' })).toEqual({ ids: [7, 8] });
	it.all();
	it.toggle(9);
	expect([it.has(7), it.has(9), it.size(100)]).toEqual([true, false, 99]);
	expect(it.body({ search: 'bbc' })).toEqual({ filter: { search: 'bbc' }, exclude: [9] });
	it.clear();
	expect(it.isEmpty).toBe(true);
});
