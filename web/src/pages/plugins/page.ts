import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'plugins',
	title: () => text().title,
	icon: 'plugin',
	level: 10,
	group: 'manage',
	order: 340,
	load: () => import('./Plugins.svelte'),
});
