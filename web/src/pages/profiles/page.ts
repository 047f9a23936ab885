import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'settings/profiles',
	title: () => text().title,
	icon: 'profile',
	level: 10,
	group: 'manage',
	order: 370,
	load: () => import('./Profiles.svelte'),
});
