import { expect, it } from 'vitest';
import {
	bodyOf,
	newPlayerPassword,
	preferredFirst,
	shownGroups,
	valuesOf,
	withFormat,
	type User,
} from './model';

it('empty passwords stay as they are', () => {
	expect(bodyOf({ password: '', current_password: '', email: 'a@b' })).toEqual({ email: 'a@b' });
	expect(bodyOf({ password: 'new password', current_password: 'old' })).toEqual({
		password: 'new password',
		current_password: 'old',
	});
});

it('an empty player password is removed, and only changed properties are sent', () => {
	expect(bodyOf({ xc_password: '' })).toEqual({ custom_properties: { xc_password: null } });
	expect(bodyOf({ hide_adult_content: true })).toEqual({ custom_properties: { hide_adult_content: true } });
	expect(bodyOf({ recordings: 'on', recording_quota: 1.5 })).toEqual({
		custom_properties: { recordings_enabled: true, recording_quota_bytes: 1.5 * 1024 ** 3 },
	});
	expect(bodyOf({ recordings: 'settings', recording_quota: null })).toEqual({
		custom_properties: { recordings_enabled: null, recording_quota_bytes: null },
	});
	expect(bodyOf({ stream_limit: null })).toEqual({ stream_limit: 0 });
	expect(bodyOf({ exp_date: '2027-01-31' })).toEqual({ exp_date: '2027-01-31T00:00:00Z' });
	expect(bodyOf({ exp_date: '' })).toEqual({ exp_date: null });
});

it('the formats of a user are those of the property, the preferred one first', () => {
	const formats = (custom_properties: object) => valuesOf({ custom_properties } as User).output_formats;
	expect(formats({})).toEqual(['ts', 'm3u8', 'mp4']);
	expect(formats({ output_formats: 'hls,ts' })).toEqual(['m3u8', 'ts']);
	expect(preferredFirst(['ts', 'm3u8', 'mp4'], 'm3u8')).toEqual(['m3u8', 'ts', 'mp4']);
	expect(withFormat(['m3u8', 'mp4'], 'ts', true)).toEqual(['m3u8', 'ts', 'mp4']);
	expect(withFormat(['m3u8', 'mp4'], 'm3u8', false)).toEqual(['mp4']);
	expect(withFormat(['mp4'], 'mp4', false), 'one stays').toEqual(['mp4']);
	expect(bodyOf({ output_formats: ['m3u8'] })).toEqual({ custom_properties: { output_formats: ['m3u8'] } });
	expect(bodyOf({ output_formats: ['ts', 'm3u8', 'mp4'] })).toEqual({
		custom_properties: { output_formats: null },
	});
});

it('a search keeps the chosen groups, and those that were deleted can be left', () => {
	const groups = [
		{ id: 1, name: 'News' },
		{ id: 2, name: 'Kids' },
		{ id: 3, name: 'Film' },
	];
	const names = (chosen: number[], search: string): string[] =>
		shownGroups(groups, chosen, search, (id) => `deleted ${id}`).map((it) => it.name);
	expect(names([], '')).toEqual(['Film', 'Kids', 'News']);
	expect(names([1], ' KID ')).toEqual(['Kids', 'News']);
	expect(names([9, 1], 'x')).toEqual(['deleted 9', 'News']);
});

it('allowed hours are removed, and groups are sent as they are', () => {
	expect(bodyOf({ allowed_hours: null, channel_group_ids: [1] })).toEqual({
		allowed_hours: null,
		channel_group_ids: [1],
	});
});

it('player passwords are random and can be typed with a remote control', () => {
	const passwords = new Set(Array.from({ length: 100 }, newPlayerPassword));
	expect(passwords.size).toBe(100);
	for (const it of passwords) expect(it).toMatch(/^[a-km-np-z2-9]{12}$/);
});
