import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'library',
	title: () => titles().library,
	icon: 'film',
	level: 0,
	group: 'watch',
	order: 40,
	isInBar: true,
	load: () => import('./Library.svelte'),
});
