import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'library',
	title: () => text().title,
	icon: 'film',
	level: 0,
	group: 'watch',
	order: 40,
	isInBar: true,
	load: () => import('./Library.svelte'),
});
