import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'health',
	title: () => titles().health,
	icon: 'health',
	level: 10,
	group: 'sources',
	order: 240,
	load: () => import('./Health.svelte'),
});
