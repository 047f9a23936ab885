import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'logos',
	title: () => text().title,
	icon: 'logo',
	level: 10,
	group: 'lineup',
	order: 140,
	load: () => import('./Logos.svelte'),
});
