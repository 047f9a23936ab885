import { expect, it } from 'vitest';
import {
	beforeAfter,
	choicesOf,
	countsOf,
	IDENTITY_KEYS,
	isDefaultOrder,
	keysOf,
	kindOf,
	type PreviewedChange,
	type RefreshPreview,
} from './identity';

it('keys that an account does not use are listed behind the others', () => {
	const choices = choicesOf(['guide_id', 'address']);
	expect(choices.map((it) => `${it.id} ${it.isUsed}`)).toEqual([
		'guide_id true',
		'address true',
		'panel_id false',
		'bare_address false',
		'name_and_group false',
		'name false',
	]);
	expect(keysOf(choices)).toEqual(['guide_id', 'address']);
	expect(isDefaultOrder(choices)).toBe(false);
	expect(isDefaultOrder(choicesOf(IDENTITY_KEYS))).toBe(true);
	expect(isDefaultOrder(choicesOf(IDENTITY_KEYS.slice(0, 3)))).toBe(false);
});

const change = (more: Partial<PreviewedChange>): PreviewedChange => ({
	change: 'updated',
	stream_id: 1,
	recognised_by: 'name',
	name_before: 'News',
	name: 'News',
	host_before: 'a',
	host: 'a',
	url_before: 'http://a/1',
	url: 'http://a/1',
	...more,
});

it('a stream with another address moves, also within its host', () => {
	expect(kindOf(change({ url: 'http://a/2' }))).toBe('moved');
	expect(kindOf(change({ name: 'News HD' }))).toBe('updated');
	expect(kindOf(change({ change: 'created', url_before: null }))).toBe('created');
	expect(kindOf(change({ change: 'missing', url: null }))).toBe('missing');
});

it('each stream is counted in one list', () => {
	const preview = {
		streams_updated: 10,
		streams_moved: 7,
		streams_created: 2,
		streams_stale: 3,
		streams_deleted: 1,
	} as RefreshPreview;
	expect(countsOf(preview)).toEqual({ moved: 7, updated: 3, created: 2, missing: 4 });
});

it('a value that changes is shown before and after', () => {
	expect(beforeAfter('a', 'b')).toBe('a → b');
	expect(beforeAfter('a', 'a')).toBe('a');
	expect(beforeAfter(null, 'b')).toBe('b');
	expect(beforeAfter('a', null)).toBe('a');
	expect(beforeAfter(null, null)).toBe('');
});
