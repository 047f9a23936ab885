import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'watch',
	title: () => titles().watch,
	icon: 'watch',
	level: 0,
	group: 'watch',
	order: 30,
	isInBar: true,
	load: () => import('./Watch.svelte'),
});
