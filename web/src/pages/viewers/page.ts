import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'now/viewers',
	title: () => titles().viewers,
	icon: 'user',
	level: 10,
	group: 'manage',
	order: 320,
	load: () => import('./Viewers.svelte'),
});
