import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'logos',
	title: () => titles().logos,
	icon: 'logo',
	level: 10,
	group: 'lineup',
	order: 140,
	load: () => import('./Logos.svelte'),
});
