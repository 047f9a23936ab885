import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'users/permissions',
	title: () => titles().permissions,
	icon: 'check',
	level: 10,
	order: 311,
	load: () => import('./Permissions.svelte'),
});
