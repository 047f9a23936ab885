import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'watch',
	title: () => text().title,
	icon: 'watch',
	level: 0,
	place: 'main',
	order: 50,
	load: () => import('./Watch.svelte'),
});
