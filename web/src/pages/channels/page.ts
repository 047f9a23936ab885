import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'channels',
	title: () => titles().channels,
	icon: 'channel',
	level: 1,
	group: 'lineup',
	order: 110,
	isInBar: true,
	load: () => import('./Channels.svelte'),
});
