// The order of the groups in outputs: those with a position, and those that follow them.

import type { ChannelGroup } from './groups.svelte';

/** Returns the groups that have a position, in their order. */
export const orderedGroups = (groups: readonly ChannelGroup[]): ChannelGroup[] =>
	groups
		.filter((it) => it.position !== null)
		.sort((a, b) => (a.position ?? 0) - (b.position ?? 0) || a.name.localeCompare(b.name));

/** Returns the groups without a position that outputs show: those with channels. */
export const unorderedGroups = (groups: readonly ChannelGroup[]): ChannelGroup[] =>
	groups.filter((it) => it.position === null && it.channel_count > 0);

/** Returns all groups with these ids in this order; the others have no position. */
export function withOrder(groups: readonly ChannelGroup[], ids: readonly number[]): ChannelGroup[] {
	const positions = new Map(ids.map((id, n) => [id, n + 1]));
	return groups.map((it) => ({ ...it, position: positions.get(it.id) ?? null }));
}

/** Returns the groups in order, and behind them the others that have channels. */
export const allOrdered = (groups: readonly ChannelGroup[]): ChannelGroup[] => [
	...orderedGroups(groups),
	...unorderedGroups(groups),
];
