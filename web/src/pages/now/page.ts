import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'now',
	title: () => titles().now,
	icon: 'now',
	level: 1,
	group: 'watch',
	order: 10,
	isInBar: true,
	load: () => import('./Now.svelte'),
});
