import { expect, it } from 'vitest';
import { ApiError } from '$lib/api';
import { bodyOf, byField, connections, expiryTone, hostOf } from './accounts';

const account = { custom_properties: { note: 'x', timezone: 'Europe/Berlin' } };

const profile = (
	current_viewers: number,
	max_streams: number,
	panel_max_streams: number | null = null,
	is_active = true,
) => ({
	current_viewers,
	max_streams,
	panel_max_streams,
	is_active,
});

it('the limit of an account is that of its active profiles', () => {
	expect(connections({ profiles: [profile(1, 2), profile(0, 3), profile(1, 9, null, false)] })).toEqual({
		used: 2,
		max: 5,
	});
	expect(connections({ profiles: [profile(1, 0, 4)] })).toEqual({ used: 1, max: 4 });
	expect(connections({ profiles: [profile(1, 2), profile(0, 0)] })).toEqual({ used: 1, max: 0 });
	expect(connections({ profiles: [] })).toEqual({ used: 0, max: 0 });
});

it('an expiry is a warning a week before', () => {
	const now = Date.parse('2026-05-01T00:00:00Z');
	expect(expiryTone('2026-06-01T00:00:00Z', now)).toBe('neutral');
	expect(expiryTone('2026-05-07T00:00:00Z', now)).toBe('warn');
	expect(expiryTone('2026-04-30T00:00:00Z', now)).toBe('bad');
});

it('empty secrets stay as they are, and empty dates are removed', () => {
	expect(bodyOf(account, { password: '', name: 'TV' })).toEqual({ name: 'TV' });
	expect(bodyOf(account, { password: 'p', user_agent: '', exp_date: '' })).toEqual({
		password: 'p',
		user_agent: null,
		exp_date: null,
	});
	expect(bodyOf(account, { exp_date: '2026-05-01' })).toEqual({ exp_date: '2026-05-01T00:00:00Z' });
});

it('hidden values of a box stay unless they are entered anew or removed', () => {
	expect(bodyOf(account, { serial_number: '', device_id: ' ', mac_address: '' })).toEqual({});
	expect(bodyOf(account, { serial_number: ' S1 ', mac_address: '00:1A:79:00:00:01' })).toEqual({
		serial_number: 'S1',
		mac_address: '00:1A:79:00:00:01',
	});
	expect(bodyOf(account, { forgets_box: true, device_id: 'D1' })).toEqual({
		serial_number: null,
		device_id: 'D1',
		device_id2: null,
		signature: null,
	});
	expect(bodyOf(account, { forgets_box: false })).toEqual({});
});

it('addresses are sent as a list, and an empty proxy is removed', () => {
	expect(
		bodyOf(account, { proxy: '', further_addresses: 'http://b.example\n\n https://c.example ' }),
	).toEqual({
		proxy: null,
		further_addresses: ['http://b.example', 'https://c.example'],
	});
	expect(bodyOf(account, { proxy: 'http://***@p:1', further_addresses: '' })).toEqual({
		proxy: 'http://***@p:1',
		further_addresses: [],
	});
});

it('a time zone is sent with the other properties, and its error belongs to its field', () => {
	expect(bodyOf(account, { timezone: 'Europe/Paris' })).toEqual({
		custom_properties: { note: 'x', timezone: 'Europe/Paris' },
	});
	expect(bodyOf(account, { timezone: null })).toEqual({ custom_properties: { note: 'x', timezone: null } });
	const refused = (custom_properties: string) => new ApiError(400, 'no', { custom_properties }, null);
	const message = 'timezone is the name of a time zone, such as Europe/Paris.';
	expect(byField(refused(message))).toMatchObject({ fields: { timezone: message } });
	expect(byField(refused('other'))).toMatchObject({ fields: { custom_properties: 'other' } });
});

it('an address is shown without its credentials', () => {
	expect(hostOf('http://anna:secret@tv.example:8080/get.php?password=x')).toBe('http://tv.example:8080');
	expect(hostOf('nonsense')).toBe('');
});
