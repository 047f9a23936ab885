import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'channels',
	title: () => text().title,
	icon: 'channel',
	level: 1,
	group: 'lineup',
	order: 110,
	isInBar: true,
	load: () => import('./Channels.svelte'),
});
