import { number, texts } from '$lib/i18n';

export const listText = texts('list', {
	selected: (n: number) => `${number(n)} selected`,
	selectAll: (n: number) => `Select all ${number(n)}`,
	clear: 'Clear selection',
	select: 'Select',
	keys: 'Arrow keys move, Enter opens, Space selects.',
	editKeys: 'F2 edits the row.',
	moveKeys: 'Alt with an arrow key aims at another place, Enter moves the row there.',
	moving: (place: number) => `To place ${number(place)}. Enter moves the row, Escape leaves it.`,
	place: 'Place',
});

export const gridText = texts('grid', { keys: 'Arrow keys move, Enter opens.' });
