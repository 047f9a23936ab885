import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'settings/profiles',
	title: () => titles().profiles,
	icon: 'profile',
	level: 10,
	group: 'manage',
	order: 370,
	load: () => import('./Profiles.svelte'),
});
