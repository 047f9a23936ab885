import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'activity',
	title: () => text().title,
	icon: 'activity',
	level: 10,
	place: 'more',
	order: 90,
	load: () => import('./Activity.svelte'),
});
