import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'settings',
	title: () => text().title,
	icon: 'settings',
	level: 10,
	group: 'manage',
	order: 400,
	load: () => import('./Settings.svelte'),
});
