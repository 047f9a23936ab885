// Channel groups for filters and editors.

import { api, ok, type Schemas } from '$lib/api';
import { resource, type Resource } from '$lib/ui';

export type ChannelGroup = Schemas['ChannelGroup'];

/** Groups that a search lists. */
const LISTED_MAX = 50;

/** In a component: all channel groups. */
export function groupsResource(): Resource<ChannelGroup[]> {
	return resource(
		() => null,
		async (_, signal) => (await ok(api.GET('/api/channels/groups/', { signal }))).results,
	);
}

/** Returns the groups whose names contain a text, at most as many as a list shows. */
export function findGroups(groups: readonly ChannelGroup[], text: string) {
	const wanted = text.trim().toLowerCase();
	return groups
		.filter((it) => it.name.toLowerCase().includes(wanted))
		.slice(0, LISTED_MAX)
		.map((it) => ({ value: it.id, label: it.name }));
}
