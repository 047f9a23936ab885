import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'sources',
	title: () => text().title,
	icon: 'source',
	level: 10,
	place: 'main',
	order: 40,
	load: () => import('./Sources.svelte'),
});
