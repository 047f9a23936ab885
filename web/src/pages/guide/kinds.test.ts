import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { messages } from '../../lib/ui/messages.svelte';
import { dayStart } from './axis';
import { KINDS, kindOf, queryOf } from './kinds';
import { reminders, type Reminder } from './reminders.svelte';

describe('kinds of programmes', () => {
	test.each([
		[['News', 'Live'], 'news'],
		[['Nachrichten'], 'news'],
		[['Magazine', 'Fußball-Bundesliga'], 'sports'],
		[['Actualités'], 'news'],
		[['Película'], 'film'],
		[['PELICULA'], 'film'],
		[['Dokumentation'], 'documentary'],
		[['dla dzieci'], 'children'],
		// The first kind that fits counts.
		[['Series', 'Kids'], 'children'],
		// Words, not parts of words.
		[['Magazine/Sport'], 'sports'],
		[['Transport'], undefined],
		[[''], undefined],
		[[], undefined],
		[null, undefined],
		[undefined, undefined],
	])('of %o is %s', (categories, kind) => {
		expect(kindOf(categories)).toBe(kind);
		expect(kindOf(categories)).toBe(kind);
	});

	test.each(KINDS)('the words of %s are as long as the API allows', (kind) => {
		expect(queryOf(kind).length).toBeLessThanOrEqual(500);
		expect(queryOf(kind)).toContain(' OR ');
	});
});

test('days begin at midnight, also where the clock changes', () => {
	const noon = new Date(2026, 9, 24, 12).getTime();
	for (const days of [0, 1, 2]) {
		const at = new Date(dayStart(noon, days));
		expect([at.getDate(), at.getHours(), at.getMinutes()]).toEqual([24 + days, 0, 0]);
	}
});

describe('reminders', () => {
	const NOW = Date.parse('2026-03-01T20:00:00Z');
	const reminder = (id: string, start: number): Reminder => ({
		id,
		title: `Film ${id}`,
		uuid: `u${id}`,
		channel: 'Movies',
		start,
	});
	const shown = () => messages.list.map((it) => it.text);

	beforeEach(() => {
		vi.useFakeTimers({ now: NOW });
		localStorage.clear();
		messages.list = [];
		reminders.look(0);
	});
	afterEach(() => void vi.useRealTimers());

	it('come a minute before the start, each once, and lead to the channel', () => {
		reminders.add(reminder('1', NOW + 5 * 60_000));
		reminders.add(reminder('1', NOW + 5 * 60_000));
		expect([reminders.has('1'), reminders.list.length]).toEqual([true, 1]);
		reminders.look(NOW + 3 * 60_000);
		expect(shown()).toEqual([]);
		reminders.look(NOW + 4 * 60_000);
		expect(shown()).toHaveLength(1);
		expect(shown()[0]).toMatch(/^Film 1 begins at .* on Movies\.$/);
		expect(messages.list[0]?.action?.label).toBe('Watch the channel');
		messages.list = [];
		reminders.look(NOW + 5 * 60_000);
		expect([shown(), reminders.has('1')]).toEqual([[], false]);
	});

	it('are not shown long after the start, and can be removed', () => {
		reminders.add(reminder('2', NOW));
		reminders.look(NOW + 11 * 60_000);
		expect([shown(), reminders.list]).toEqual([[], []]);
		reminders.add(reminder('3', NOW + 60 * 60_000));
		reminders.remove('3');
		expect(JSON.parse(localStorage.getItem('headwater.reminders') ?? '')).toEqual([]);
	});

	it('survive what others wrote into the storage', () => {
		for (const text of ['', '{', '{}', '[null, 1, {"id": 3}]']) {
			localStorage.setItem('headwater.reminders', text);
			reminders.look(NOW);
			expect(reminders.list).toEqual([]);
		}
	});
});
