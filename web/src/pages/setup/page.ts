import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'setup',
	title: () => text().title,
	icon: 'setup',
	level: null,
	bare: true,
	order: 0,
	load: () => import('./Setup.svelte'),
});
