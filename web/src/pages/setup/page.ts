import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'setup',
	title: () => titles().setup,
	icon: 'setup',
	level: null,
	bare: true,
	order: 0,
	load: () => import('./Setup.svelte'),
});
