import { expect, it } from 'vitest';
import { ApiError } from '$lib/api';
import type { ChannelRow } from './filters';
import { atFields, bodyOf, NEW_CHANNEL, originOf, resetBody, valuesOf } from './editor';

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

it('the output as datagrams is one object, which is sent when a part of it has changed', () => {
	const values = { ...NEW_CHANNEL, udp_mode: 'always', udp_address: 'udp://239.1.2.3:5000' } as const;
	expect(bodyOf(values, { name: 'News' })).toEqual({ name: 'News' });
	const output = { mode: 'always', address: 'udp://239.1.2.3:5000', interface: null };
	expect(bodyOf(values, { udp_mode: 'always' })).toEqual({ udp_output: output });
	const more = { ...values, udp_interface: ' eth0 ', udp_ttl: 4 };
	expect(bodyOf(more, { udp_ttl: 4 })).toEqual({ udp_output: { ...output, interface: 'eth0', ttl: 4 } });
	expect(bodyOf({ ...more, udp_mode: 'off' }, { udp_mode: 'off' })).toEqual({ udp_output: null });
	const row = channel({ udp_output: { ...output, mode: 'watched', ttl: 1 } });
	const { udp_mode, udp_address, udp_interface, udp_ttl } = valuesOf(row);
	expect([udp_mode, udp_address, udp_interface, udp_ttl]).toEqual(['watched', output.address, '', 1]);
});

it('the message for a part of the output is at its field', () => {
	const at = (message: string, more = {}) => {
		const error = atFields(new ApiError(400, 'wrong', { udp_output: message, ...more }));
		return (error as ApiError).fields;
	};
	expect(at('address: The port is missing.')).toEqual({ udp_address: 'The port is missing.' });
	expect(at('interface: Enter a name: eth0.')).toEqual({ udp_interface: 'Enter a name: eth0.' });
	expect(at('ttl: Too large.', { name: 'Required.' })).toEqual({ udp_ttl: 'Too large.', name: 'Required.' });
	expect(at('This is not valid.')).toEqual({ udp_address: 'This is not valid.' });
	const other = new ApiError(409, 'busy');
	expect(atFields(other)).toBe(other);
});
