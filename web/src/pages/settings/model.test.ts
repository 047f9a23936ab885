import { expect, it } from 'vitest';
import { bodyOf, matches, settingsOf, valuesOf, withoutOwn } from './model';

const group = {
	defaults: {
		stall_timeout: 5,
		at_limit: 'replace_own',
		UI: { connect: 'all', anonymous: '' },
		ring_budget_bytes: null,
	},
	value: { stall_timeout: 7, UI: { connect: ['10.0.0.0/8', '192.168.1.5'] }, of_a_client: 1 },
};

it('each setting has its own value or its default', () => {
	const settings = settingsOf(group);
	expect(settings).toEqual([
		{ name: 'stall_timeout', fallback: 5, own: 7 },
		{ name: 'at_limit', fallback: 'replace_own', own: undefined },
		{ name: 'UI.connect', fallback: 'all', own: '10.0.0.0/8, 192.168.1.5' },
		{ name: 'UI.anonymous', fallback: '', own: undefined },
		{ name: 'ring_budget_bytes', fallback: null, own: undefined },
	]);
	expect(valuesOf(settings)).toMatchObject({ stall_timeout: 7, at_limit: 'replace_own', 'UI.anonymous': '' });
});

it('only changed settings are sent, a part of an object with its other own parts', () => {
	expect(bodyOf(group, { stall_timeout: 9 })).toEqual({ stall_timeout: 9 });
	expect(bodyOf(group, { 'UI.anonymous': 'private' })).toEqual({
		UI: { connect: ['10.0.0.0/8', '192.168.1.5'], anonymous: 'private' },
	});
	expect(bodyOf({ defaults: {}, value: {} }, { 'UI.anonymous': 'a', 'UI.connect': 'b' })).toEqual({
		UI: { anonymous: 'a', connect: 'b' },
	});
});

it('a list of texts has one per line, and an empty text in place of nothing is nothing', () => {
	const lists = { defaults: { ignored: ['a', 'b'], region: null }, value: { ignored: ['Sling: '] } };
	expect(settingsOf(lists)).toEqual([
		{ name: 'ignored', fallback: 'a\nb', own: 'Sling: ', isList: true },
		{ name: 'region', fallback: null, own: undefined },
	]);
	expect(bodyOf(lists, { ignored: 'Sling: \n\nTV', region: '' })).toEqual({
		ignored: ['Sling: ', 'TV'],
		region: null,
	});
});

it('a reset keeps all other values', () => {
	expect(withoutOwn(group, 'stall_timeout')).toEqual({ UI: group.value.UI, of_a_client: 1 });
	expect(withoutOwn(group, 'UI.connect')).toEqual({ stall_timeout: 7, of_a_client: 1 });
	expect(withoutOwn(group, 'UI.anonymous')).toEqual(group.value);
});

it('a search finds every word in any text', () => {
	expect(matches('stall TIME', ['stall_timeout', 'Time until a source is lost'])).toBe(true);
	expect(matches('stall disk', ['stall_timeout'])).toBe(false);
	expect(matches('', ['x'])).toBe(true);
});
