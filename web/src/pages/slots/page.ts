import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'slots',
	title: () => text().title,
	icon: 'slot',
	level: 10,
	group: 'sources',
	order: 230,
	load: () => import('./SlotsPage.svelte'),
});
