import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'me',
	title: () => text().title,
	icon: 'me',
	level: 0,
	order: 500,
	load: () => import('./Me.svelte'),
});
