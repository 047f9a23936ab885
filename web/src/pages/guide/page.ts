import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'guide',
	title: () => titles().guide,
	icon: 'guide',
	level: 0,
	group: 'watch',
	order: 20,
	isInBar: true,
	load: () => import('./Guide.svelte'),
});
