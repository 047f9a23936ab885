import { expect, test } from 'vitest';
import { answerOf, nameOf, partsOf } from './log';

const nothing = { request_payload: {}, response_payload: null, output: null, result: null };

test('the answer is a status or an exit code', () => {
	expect(answerOf({ ...nothing, response_payload: { status_code: 204, body: '' } })).toBe('204');
	expect(answerOf({ ...nothing, output: { exit_code: 75, stdout: '', stderr: '' } })).toBe('exit 75');
	expect(answerOf({ ...nothing, output: { exit_code: null, stdout: '', stderr: '' } })).toBe('no exit code');
	expect(answerOf(nothing)).toBe('');
});

test.each([
	['vod_stop', 'event', 'A film or an episode stops'],
	['of_a_newer_gateway', 'event', 'of_a_newer_gateway'],
	['schedule', 'schedule', 'Schedule'],
	['button', 'button', 'Button'],
] as const)('the cause of %s', (event, cause, name) => {
	expect(nameOf({ event, cause })).toBe(name);
});

test('the object that an action of a plugin returned is shown', () => {
	expect(partsOf({ ...nothing, result: { status: 'ok' } })).toEqual([
		{ title: 'Result of the action', content: '{\n  "status": "ok"\n}' },
	]);
	// One that is too long is cut off.
	expect(partsOf({ ...nothing, result: { body: '{"a": [1, 2' } })[0]?.content).toBe('{"a": [1, 2');
	expect(partsOf({ ...nothing, result: {} })).toEqual([]);
});

test('what was sent and what came back is shown as far as it exists', () => {
	expect(partsOf(nothing)).toEqual([]);
	expect(partsOf({ ...nothing, request_payload: { body: 'News plays' } })).toEqual([
		{ title: 'Sent', content: 'News plays' },
	]);
	const output = { exit_code: 1, stdout: 'a', stderr: '' };
	expect(partsOf({ ...nothing, request_payload: { body: 'x', event: 'vod_stop' }, output })).toEqual([
		{ title: 'Sent', content: '{\n  "body": "x",\n  "event": "vod_stop"\n}' },
		{ title: 'Output', content: 'a' },
	]);
	const response_payload = { status_code: 400, body: '{"message":"Unknown"}' };
	expect(partsOf({ ...nothing, response_payload })[0]?.content).toBe('{\n  "message": "Unknown"\n}');
});
