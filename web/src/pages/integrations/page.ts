import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'integrations',
	title: () => titles().integrations,
	icon: 'send',
	level: 10,
	group: 'manage',
	order: 330,
	load: () => import('./Integrations.svelte'),
});
