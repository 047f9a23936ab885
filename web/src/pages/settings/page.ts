import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'settings',
	title: () => titles().settings,
	icon: 'settings',
	level: 10,
	group: 'manage',
	order: 400,
	load: () => import('./Settings.svelte'),
});
