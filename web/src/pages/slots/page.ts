import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'slots',
	title: () => titles().slots,
	icon: 'slot',
	level: 10,
	group: 'sources',
	order: 230,
	load: () => import('./SlotsPage.svelte'),
});
