import { expect, test } from 'vitest';
import { causeOf, eventOf, given, integrationOf, oneOf, pageOf, pluginOf } from './filters';

test('only values that are possible are read from the address', () => {
	const query = new URLSearchParams('page=3&of=vod_stop&integration=7');
	expect([pageOf(query), eventOf(query), integrationOf(query)]).toEqual([3, 'vod_stop', 7]);
	const wrong = new URLSearchParams('page=-1&of=toString&integration=x');
	expect([pageOf(wrong), eventOf(wrong), integrationOf(wrong)]).toEqual([1, null, null]);
	const runs = new URLSearchParams('plugin=cleaner&cause=button');
	expect([pluginOf(runs), causeOf(runs)]).toEqual(['cleaner', 'button']);
	const none = new URLSearchParams('plugin=&cause=toString');
	expect([pluginOf(none), causeOf(none)]).toEqual([null, null]);
	expect(oneOf('dead', ['waiting', 'dead'])).toBe('dead');
	expect(oneOf(null, ['waiting'])).toBeNull();
});

test('empty filters are not sent', () => {
	expect(given({ event: null, integration: 7 })).toEqual({ integration: 7 });
});
