import { expect, it } from 'vitest';
import { channelFilter, cleared, streamFilter } from './filters';

const query = (text: string) => new URLSearchParams(text);

it('the filters of channels are read from the address', () => {
	expect(channelFilter(query(''))).toEqual({});
	expect(channelFilter(query('q=bbc&group=3&state=hidden&lineup=2&only=stale&ordering=-name'))).toEqual({
		search: 'bbc',
		channel_group: ['3'],
		visibility_filter: 'hidden',
		channel_profile_id: 2,
		only_stale: true,
		ordering: '-name',
	});
	for (const [only, expected] of [
		['unguided', { epg: ['false'] }],
		['streamless', { only_streamless: true }],
		['failing', { only_failing: true }],
		['unplayed', { only_unplayed: true }],
	] as const)
		expect(channelFilter(query(`only=${only}`))).toEqual(expected);
});

it('values that the page does not know are ignored', () => {
	expect(channelFilter(query('group=x&state=odd&lineup=-1&only=x&ordering=password&q='))).toEqual({});
	expect(streamFilter(query('sgroup=1.5&source=0&use=x&sordering=x&content=x'))).toEqual({
		content_type: ['live'],
	});
});

it('the filters of streams are read from the address', () => {
	expect(streamFilter(query(''))).toEqual({ content_type: ['live'] });
	const all = streamFilter(
		query('sq=b&sgroup=3&source=2&use=unused&stale=hide&content=all&sordering=health'),
	);
	expect(all).toEqual({
		search: 'b',
		channel_group: ['3'],
		m3u_account: [2],
		unassigned: true,
		hide_stale: true,
		ordering: 'health',
	});
	expect(streamFilter(query('use=used_here'), 7)).toEqual({ assigned: 7, content_type: ['live'] });
	expect(streamFilter(query('use=used_here'))).toEqual({ content_type: ['live'] });
});

it('filters are removed by name', () => {
	expect(cleared(['q', 'group'])).toEqual({ q: null, group: null });
});
