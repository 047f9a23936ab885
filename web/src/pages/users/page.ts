import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'users',
	title: () => titles().users,
	icon: 'users',
	level: 10,
	group: 'manage',
	order: 310,
	load: () => import('./Users.svelte'),
});
