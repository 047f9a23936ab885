import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'integrations',
	title: () => text().title,
	icon: 'send',
	level: 10,
	group: 'manage',
	order: 330,
	load: () => import('./Integrations.svelte'),
});
