import { definePage } from '$lib/router';
import { text } from './text';

export default definePage({
	path: 'nodes',
	title: () => text().title,
	icon: 'source',
	level: 10,
	// Most gateways are not in a cluster: the page of the health leads here if one is.
	group: 'manage',
	order: 350,
	load: () => import('./Nodes.svelte'),
});
