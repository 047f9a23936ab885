import { expect, it } from 'vitest';
import { changedGroups, matchingGroups, type Group } from './groups';

const group = (id: number, name: string, streams: number, enabled = true): Group => ({
	m3u_account: 7,
	channel_group: id,
	channel_group_name: name,
	enabled,
	stream_count: streams,
	auto_channel_sync: false,
	auto_sync_channel_start: null,
	auto_sync_channel_end: null,
	custom_properties: {},
	is_stale: false,
	last_seen: null,
});
const groups = [group(1, 'News', 5), group(2, 'Sport', 90), group(3, 'Newsreels', 5, false)];

it('groups are found by a part of their name, regardless of case', () => {
	expect(matchingGroups(groups, ' NEWS').map((it) => it.channel_group)).toEqual([1, 3]);
	expect(matchingGroups(groups, '').map((it) => it.channel_group)).toEqual([2, 1, 3]);
	expect(matchingGroups(groups, 'x')).toEqual([]);
});

it('only changed groups are sent', () => {
	const wanted = (it: Group) => it.channel_group !== 2;
	expect(changedGroups(groups, wanted)).toEqual([
		{ channel_group: 2, enabled: false },
		{ channel_group: 3, enabled: true },
	]);
});
