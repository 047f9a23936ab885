// The groups of an account: search and changes.

import type { Schemas } from '$lib/api';

export type Group = Schemas['ChannelGroupM3UAccount'];
export type GroupSetting = Schemas['GroupSettingRequest'];

/** Returns the groups whose names contain a text, those with most streams first. */
export function matchingGroups(groups: readonly Group[], search: string): Group[] {
	const wanted = search.trim().toLowerCase();
	const found =
		wanted === '' ? [...groups] : groups.filter((it) => it.channel_group_name.toLowerCase().includes(wanted));
	return found.sort(
		(a, b) => b.stream_count - a.stream_count || a.channel_group_name.localeCompare(b.channel_group_name),
	);
}

/** Returns the changes that import exactly the wanted groups. */
export function changedGroups(groups: readonly Group[], isWanted: (group: Group) => boolean): GroupSetting[] {
	return groups
		.filter((it) => it.enabled !== isWanted(it))
		.map((it) => ({ channel_group: it.channel_group, enabled: isWanted(it) }));
}
