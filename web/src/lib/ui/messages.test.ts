import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hold, messages, openPlace, PLACES, toast } from './messages.svelte';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
	hold(false);
	vi.runAllTimers();
	vi.useRealTimers();
});

const texts = () => messages.list.map((it) => it.text);

test('the topmost place shows the messages, and of equal ones the last that opened', () => {
	const page = openPlace(PLACES.page);
	expect(page.isTop).toBe(true);
	const dialog = openPlace(PLACES.dialog);
	const panel = openPlace(PLACES.panel);
	expect([page.isTop, panel.isTop, dialog.isTop]).toEqual([false, false, true]);
	const question = openPlace(PLACES.dialog);
	expect([dialog.isTop, question.isTop]).toEqual([false, true]);
	question.close();
	expect(dialog.isTop).toBe(true);
	dialog.close();
	panel.close();
	expect(page.isTop).toBe(true);
	page.close();
});

test('a message leaves after its time, but not while somebody reads it', () => {
	toast('Saved.', { seconds: 6 });
	vi.advanceTimersByTime(5_900);
	expect(texts()).toEqual(['Saved.']);
	hold(true);
	vi.advanceTimersByTime(60_000);
	expect(texts()).toEqual(['Saved.']);
	hold(false);
	vi.advanceTimersByTime(1_000);
	expect(texts()).toEqual([]);
});

test('of many messages the newest stay, and the same one is there once', () => {
	toast('6');
	for (let n = 1; n <= 6; n += 1) toast(String(n));
	expect(texts()).toEqual(['3', '4', '5', '6']);
});
