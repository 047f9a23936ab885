import { expect, test } from 'vitest';
import {
	bodyOf,
	faultIn,
	HIDDEN,
	laidOut,
	NEW_INTEGRATION,
	offsetOf,
	optionsOf,
	valuesOf,
	type Integration,
	type Preset,
} from './model';

const integration = {
	name: 'Chat',
	type: 'webhook',
	enabled: true,
	preset: 'telegram',
	url: 'https://api.example/…',
	method: 'POST',
	headers: { Authorization: HIDDEN },
	options: { chat_id: '-100' },
	ca_certificate: null,
	script_path: null,
	working_directory: null,
	timeout: null,
	plugin: null,
	action: null,
	parallel: 2,
	max_age: 5400,
	digest_minutes: 10,
	trusted: true,
} as Partial<Integration> as Integration;

test('the values of the form are those of the integration', () => {
	expect(valuesOf(integration)).toMatchObject({
		url: 'https://api.example/…',
		headers: [{ name: 'Authorization', value: HIDDEN }],
		options: { chat_id: '-100' },
		ca_certificate: '',
		timeout: 30,
		max_age: 1.5,
		digest_minutes: 10,
		trusted: true,
	});
});

test('only changed values of the type are sent', () => {
	const headers = [
		{ name: ' X-Key ', value: 'a' },
		{ name: '', value: 'left over' },
	];
	const changed = { headers, max_age: null, script_path: '/srv/run.sh', ca_certificate: '' };
	expect(bodyOf('webhook', changed)).toEqual({
		headers: { 'X-Key': 'a' },
		max_age: null,
		ca_certificate: null,
	});
	expect(bodyOf('script', { ...changed, max_age: 0.5, working_directory: '' })).toEqual({
		script_path: '/srv/run.sh',
		working_directory: null,
		max_age: 1800,
	});
	expect(bodyOf('webhook', { parallel: null, name: 'Chat' })).toEqual({ name: 'Chat' });
	expect(bodyOf('script', { ...NEW_INTEGRATION, type: 'script' })).not.toHaveProperty('url');
});

test('a service has the options that it needs and those that are set', () => {
	const presets = [{ preset: 'telegram', options: ['chat_id'] }] as Partial<Preset>[] as Preset[];
	expect(optionsOf(presets, { preset: 'telegram', options: {} })).toEqual(['chat_id']);
	expect(optionsOf(presets, { preset: 'telegram', options: { chat_id: '1', thread: '2' } })).toEqual([
		'chat_id',
		'thread',
	]);
	expect(optionsOf(presets, { preset: null, options: {} })).toEqual([]);
});

test('the place of a fault is found in the text', () => {
	const fault = faultIn('channel_start: line 2, column 4: There is no value "x".');
	expect(fault).toEqual({ line: 2, column: 4, message: 'There is no value "x".' });
	expect(offsetOf('ab\n12345', { line: 2, column: 4 })).toBe(6);
	expect(offsetOf('📺📺x', { line: 1, column: 3 })).toBe(4);
	expect(offsetOf('ab', { line: 9, column: 9 })).toBe(2);
	expect(faultIn('Too long.')).toBeNull();
});

test('JSON is laid out, and other texts stay', () => {
	expect(laidOut('{"a":1}')).toBe('{\n  "a": 1\n}');
	expect(laidOut('News plays')).toBe('News plays');
});
