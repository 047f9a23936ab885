import { definePage } from '$lib/router';
import { titles } from '../../shell/titlesText';

export default definePage({
	path: 'nodes',
	title: () => titles().nodes,
	icon: 'source',
	level: 10,
	// Most gateways are not in a cluster: the page of the health leads here if one is.
	group: 'manage',
	order: 350,
	load: () => import('./Nodes.svelte'),
});
