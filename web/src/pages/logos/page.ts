import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'logos',
	title: () => text().title,
	icon: 'logo',
	level: 10,
	place: 'more',
	order: 28,
	load: () => import('./Logos.svelte'),
});
