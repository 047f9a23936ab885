import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'plugins',
	title: () => titles().plugins,
	icon: 'plugin',
	level: 10,
	group: 'manage',
	order: 340,
	load: () => import('./Plugins.svelte'),
});
