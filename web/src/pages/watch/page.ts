import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'watch',
	title: () => text().title,
	icon: 'watch',
	level: 0,
	group: 'watch',
	order: 30,
	isInBar: true,
	load: () => import('./Watch.svelte'),
});
