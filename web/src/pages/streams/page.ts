import { definePage } from '$lib/router';
import { text } from '../channels/text';

export default definePage({
	path: 'streams',
	title: () => text().streamsTitle,
	icon: 'stream',
	level: 1,
	group: 'lineup',
	order: 120,
	load: () => import('../channels/Streams.svelte'),
});
