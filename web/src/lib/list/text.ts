import { number, texts } from '$lib/i18n';

export const listText = texts('list', {
	selected: (n: number) => `${number(n)} selected`,
	selectAll: (n: number) => `Select all ${number(n)}`,
	clear: 'Clear selection',
	select: 'Select',
	keys: 'Arrow keys move, Enter opens, Space selects.',
});

export const gridText = texts('grid', { keys: 'Arrow keys move, Enter opens.' });
