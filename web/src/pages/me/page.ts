import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'me',
	title: () => text().title,
	icon: 'me',
	level: 0,
	place: 'more',
	order: 100,
	load: () => import('./Me.svelte'),
});
