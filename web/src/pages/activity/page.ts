import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'activity',
	title: () => titles().activity,
	icon: 'activity',
	level: 10,
	group: 'manage',
	order: 390,
	load: () => import('./Activity.svelte'),
});
