import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'sources',
	title: () => titles().sources,
	icon: 'source',
	level: 10,
	group: 'sources',
	order: 210,
	parts: () => [
		{ title: titles().accounts, icon: 'source' },
		{ title: titles().guides, icon: 'guide', query: 'kind=guides' },
	],
	load: () => import('./Sources.svelte'),
});
