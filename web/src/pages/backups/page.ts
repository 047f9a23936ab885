import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'settings/backups',
	title: () => titles().backups,
	icon: 'archive',
	level: 10,
	group: 'manage',
	order: 360,
	load: () => import('./Backups.svelte'),
});
