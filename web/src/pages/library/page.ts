import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'library',
	title: () => text().title,
	icon: 'film',
	level: 0,
	place: 'main',
	order: 55,
	load: () => import('./Library.svelte'),
});
