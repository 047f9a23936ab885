import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'streams',
	title: () => titles().streams,
	icon: 'stream',
	level: 1,
	group: 'lineup',
	order: 120,
	load: () => import('../channels/Streams.svelte'),
});
