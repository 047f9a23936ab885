import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'users',
	title: () => text().title,
	icon: 'users',
	level: 10,
	group: 'manage',
	order: 310,
	load: () => import('./Users.svelte'),
});
