import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'now/viewers',
	title: () => text().title,
	icon: 'user',
	level: 10,
	group: 'manage',
	order: 320,
	load: () => import('./Viewers.svelte'),
});
