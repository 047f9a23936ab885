import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'guide',
	title: () => text().title,
	icon: 'guide',
	level: 0,
	group: 'watch',
	order: 20,
	isInBar: true,
	load: () => import('./Guide.svelte'),
});
