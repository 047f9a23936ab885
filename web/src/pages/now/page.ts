import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'now',
	title: () => text().title,
	icon: 'now',
	level: 1,
	group: 'watch',
	order: 10,
	isInBar: true,
	load: () => import('./Now.svelte'),
});
