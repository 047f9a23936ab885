import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'settings/backups',
	title: () => text().title,
	icon: 'archive',
	level: 10,
	group: 'manage',
	order: 360,
	load: () => import('./Backups.svelte'),
});
