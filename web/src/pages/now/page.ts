import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'now',
	title: () => text().title,
	icon: 'now',
	level: 1,
	place: 'main',
	order: 10,
	load: () => import('./Now.svelte'),
});
