import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'lineups',
	title: () => titles().lineups,
	icon: 'group',
	level: 10,
	group: 'lineup',
	order: 130,
	load: () => import('./Lineups.svelte'),
});
