import { expect, it } from 'vitest';
import type { ChannelRow } from './filters';
import { originOf, resetBody } from './editor';

const channel = (more: Partial<ChannelRow>) =>
	({ auto_created: true, edited_fields: [], ...more }) as unknown as ChannelRow;

it('a value is from the provider until it is changed by hand', () => {
	expect(originOf(channel({}), 'name')).toBe('provider');
	expect(originOf(channel({ edited_fields: ['name'] }), 'name')).toBe('manual');
	expect(originOf(channel({ edited_fields: ['logo_url'] }), 'logo_url')).toBe('manual');
	expect(originOf(channel({ edited_fields: ['name'] }), 'tvg_id')).toBe('provider');
});

it('channels that an admin made, and fields that no refresh sets, have no origin', () => {
	expect(originOf(channel({ auto_created: false }), 'name')).toBeNull();
	expect(originOf(channel({}), 'user_level')).toBeNull();
});

it('a reset names the field as the API spells it', () => {
	expect(resetBody('logo_url')).toEqual({ override: { logo_id: null } });
	expect(resetBody('name')).toEqual({ override: { name: null } });
});
