import { expect, test } from 'vitest';
import type { Category } from '../common/categories';
import { isImported, matchingCategories } from './categories';

const category = (
	id: number,
	name: string,
	category_type: 'movie' | 'series',
	importing: number[],
): Category => ({
	id,
	name,
	category_type,
	category_type_display: '',
	m3u_accounts: [1, 2].map((m3u_account) => ({
		category: id,
		m3u_account,
		enabled: importing.includes(m3u_account),
	})),
});
const all = [
	category(1, 'Drama', 'movie', []),
	category(2, 'Action', 'movie', [2]),
	category(3, 'Drama', 'series', [1]),
];
const ids = (account: number, search: string, kind: 'all' | 'movie' | 'series') =>
	matchingCategories(all, account, search, kind).map((it) => it.id);

test('whether a category is imported depends on the account', () => {
	expect(all.map((it) => isImported(it, 1))).toEqual([false, false, true]);
	expect(all.map((it) => isImported(it, 2))).toEqual([false, true, false]);
});

test('categories are found by name and kind, imported ones first', () => {
	expect(ids(1, '', 'all')).toEqual([3, 2, 1]);
	expect(ids(2, '', 'all')).toEqual([2, 1, 3]);
	expect(ids(1, ' DRAMA ', 'all')).toEqual([3, 1]);
	expect(ids(1, 'dra', 'movie')).toEqual([1]);
	expect(ids(1, 'comedy', 'all')).toEqual([]);
});
