import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'history',
	title: () => titles().history,
	icon: 'chart',
	level: 10,
	group: 'manage',
	order: 325,
	load: () => import('./History.svelte'),
});
