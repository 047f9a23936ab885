import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'users/permissions',
	title: () => text().title,
	icon: 'check',
	level: 10,
	order: 311,
	load: () => import('./Permissions.svelte'),
});
