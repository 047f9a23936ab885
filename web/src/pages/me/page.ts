import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'me',
	title: () => titles().me,
	icon: 'me',
	level: 0,
	order: 500,
	load: () => import('./Me.svelte'),
});
