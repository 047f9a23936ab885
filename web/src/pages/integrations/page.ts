import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'integrations',
	title: () => text().title,
	icon: 'send',
	level: 10,
	place: 'more',
	order: 75,
	load: () => import('./Integrations.svelte'),
});
