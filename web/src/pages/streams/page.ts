import { definePage } from '$lib/router';
import { text } from '../channels/text';

export default definePage({
	path: 'streams',
	title: () => text().streamsTitle,
	icon: 'stream',
	level: 1,
	place: 'more',
	order: 25,
	load: () => import('../channels/Streams.svelte'),
});
