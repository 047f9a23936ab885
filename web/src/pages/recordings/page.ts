import { session } from '$lib/auth';
import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'recordings',
	title: () => titles().recordings,
	icon: 'record',
	level: 1,
	isPermitted: () => session.user?.may_record === true,
	group: 'watch',
	order: 50,
	isInBar: true,
	load: () => import('./Recordings.svelte'),
});
