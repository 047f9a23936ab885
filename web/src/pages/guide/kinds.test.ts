import { waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { messages } from '../../lib/ui/messages.svelte';
import { dayStart, HOUR_MS } from './axis';
import { KINDS, ProgrammeKinds, queryOf, type LoadKind } from './kinds.svelte';
import { reminders, type Reminder } from './reminders.svelte';

const SPAN = 6 * HOUR_MS;

describe('kinds of programmes', () => {
	it('are read once for a span of time, page by page, and the first kind that fits counts', async () => {
		const asked: string[] = [];
		const load: LoadKind = async (kind, from, _until, page) => {
			asked.push(`${kind} ${from / SPAN} ${page}`);
			if (kind === 'series') return { ids: page === 1 ? [1, 2] : [3], hasMore: page === 1 };
			return { ids: kind === 'children' ? [2] : [], hasMore: false };
		};
		const kinds = new ProgrammeKinds(load);
		kinds.want(7 * SPAN + 1, 8 * SPAN - 1);
		await waitFor(() => expect(kinds.of(2)).toBe('children'));
		expect([kinds.of(1), kinds.of('3'), kinds.of(4)]).toEqual(['series', 'series', undefined]);
		expect(asked).toHaveLength(KINDS.length + 1);
		expect(asked[1]).toBe('series 7 2');
		kinds.want(7 * SPAN, 8 * SPAN);
		await Promise.resolve();
		expect(asked).toHaveLength(KINDS.length + 1);
		kinds.refresh();
		await waitFor(() => expect(asked).toHaveLength(2 * KINDS.length + 2));
	});

	it('have no end of pages, and a failure leaves the guide as it is', async () => {
		const load = vi.fn<LoadKind>(async () => ({ ids: [], hasMore: true }));
		new ProgrammeKinds(load).want(0, 1);
		await waitFor(() => expect(load.mock.calls.length).toBe(6 * KINDS.length));
		const failing = vi.fn<LoadKind>(() => Promise.reject(new Error('down')));
		const kinds = new ProgrammeKinds(failing);
		kinds.want(0, 3 * SPAN);
		await waitFor(() => expect(failing).toHaveBeenCalledOnce());
		expect(kinds.of(1)).toBeUndefined();
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
