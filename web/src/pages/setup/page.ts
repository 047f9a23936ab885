import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'setup',
	title: () => text().title,
	icon: 'setup',
	level: null,
	place: 'none',
	bare: true,
	order: 5,
	load: () => import('./Setup.svelte'),
});
