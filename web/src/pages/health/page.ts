import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'health',
	title: () => text().title,
	icon: 'health',
	level: 10,
	group: 'sources',
	order: 240,
	load: () => import('./Health.svelte'),
});
