import { fireEvent, render, screen } from '@testing-library/svelte';
import { expect, test } from 'vitest';
import Menu from './Menu.svelte';

// Svelte ended the page for two entries with one label: a channel with streams of three providers, all named "News".
test('entries with the same label are told apart by their details and select their own', async () => {
	const selected: number[] = [];
	const items = [
		{ id: 1, label: 'News', detail: 'Home' },
		{ id: 2, label: 'News', detail: 'Abroad' },
		{ id: 3, label: 'News', detail: 'Abroad' },
		{ id: 4, label: 'News' },
	].map((it) => ({ ...it, onselect: () => selected.push(it.id) }));
	const { rerender } = render(Menu, { label: 'Switch to a stream', items });
	const entries = (): HTMLElement[] => screen.getAllByRole('menuitem', { hidden: true });
	const texts = (): (string | undefined)[] => entries().map((it) => it.textContent?.trim());
	expect(texts()).toEqual(['News Home', 'News Abroad', 'News Abroad', 'News']);
	for (const entry of entries()) await fireEvent.click(entry);
	expect(selected).toEqual([1, 2, 3, 4]);
	await rerender({ items: items.toReversed().slice(0, 3) });
	expect(texts()).toEqual(['News', 'News Abroad', 'News Abroad']);
});
