import { session } from '$lib/auth';
import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'recordings',
	title: () => text().title,
	icon: 'record',
	level: 1,
	isPermitted: () => session.user?.may_record === true,
	group: 'watch',
	order: 50,
	isInBar: true,
	load: () => import('./Recordings.svelte'),
});
