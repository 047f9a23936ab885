import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'channels',
	title: () => text().title,
	icon: 'channel',
	level: 1,
	place: 'main',
	order: 20,
	load: () => import('./Channels.svelte'),
});
