import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'guide',
	title: () => text().title,
	icon: 'guide',
	level: 0,
	place: 'main',
	order: 30,
	load: () => import('./Guide.svelte'),
});
