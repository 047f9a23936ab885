import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'sources',
	title: () => text().title,
	icon: 'source',
	level: 10,
	group: 'sources',
	order: 210,
	parts: () => [
		{ title: text().accounts, icon: 'source' },
		{ title: text().guides, icon: 'guide', query: 'kind=guides' },
	],
	load: () => import('./Sources.svelte'),
});
