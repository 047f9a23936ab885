import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'activity',
	title: () => text().title,
	icon: 'activity',
	level: 10,
	group: 'manage',
	order: 390,
	load: () => import('./Activity.svelte'),
});
