import { session } from '$lib/auth';
import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'recordings',
	title: () => text().title,
	icon: 'record',
	level: 1,
	isPermitted: () => session.user?.may_record === true,
	place: 'main',
	order: 57,
	load: () => import('./Recordings.svelte'),
});
