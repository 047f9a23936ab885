import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'history',
	title: () => text().title,
	icon: 'chart',
	level: 10,
	group: 'manage',
	order: 325,
	load: () => import('./History.svelte'),
});
