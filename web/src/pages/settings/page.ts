import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'settings',
	title: () => text().title,
	icon: 'settings',
	level: 10,
	place: 'more',
	order: 70,
	load: () => import('./Settings.svelte'),
});
