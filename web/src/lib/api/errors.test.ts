import { expect, test } from 'vitest';
import { errorOf, problem, refusal } from './errors';

test('a refusal names its fields, nested ones with a dot', () => {
	const error = errorOf(400, {
		name: ['This field is required.'],
		value: { port: ['Too large.', 'Not free.'] },
	});
	expect(error.fields).toEqual({ name: 'This field is required.', 'value.port': 'Too large. Not free.' });
	expect(error.message).toBe('name: This field is required.');
});

test('the message of the gateway is shown', () => {
	expect(problem(errorOf(409, { detail: 'A switch is running.' }))).toBe('A switch is running.');
	expect(problem(errorOf(502, '<html>'.repeat(1000)))).toBe('The gateway answered with status 502.');
	expect(problem(errorOf(503, 'draining\n'))).toBe('draining');
});

test('a refused undo names the records that changed since, but not all of many', () => {
	const conflicts = ['One', 'Two', 'Three', 'Four'].map((name) => ({ name, message: 'It was changed.' }));
	const error = errorOf(409, { detail: 'Four records have changed.', conflicts });
	expect(refusal(error)).toBe('One: It was changed. Two: It was changed. Three: It was changed. …');
	expect(refusal(errorOf(409, { detail: 'A switch is running.' }))).toBe('A switch is running.');
});
