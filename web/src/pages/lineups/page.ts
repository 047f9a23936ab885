import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'lineups',
	title: () => text().title,
	icon: 'group',
	level: 10,
	group: 'lineup',
	order: 130,
	load: () => import('./Lineups.svelte'),
});
