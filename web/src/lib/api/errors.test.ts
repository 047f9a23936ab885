import { afterEach, expect, test, vi } from 'vitest';
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

afterEach(() => {
	localStorage.clear();
	vi.resetModules();
});

test('codes beside the messages are not fields, and English shows the texts as they come', () => {
	const codes = { name: [{ code: 'required', values: {} }] };
	const error = errorOf(400, { name: ['This field is required.'], codes });
	expect(error.fields).toEqual({ name: 'This field is required.' });
	const known = errorOf(400, {
		detail: 'The group is used.',
		code: 'x',
		values: {},
		error: 'The group is used.',
	});
	expect([known.message, known.fields]).toEqual(['The group is used.', {}]);
	// A field may have this name.
	expect(errorOf(400, { codes: ['Too many.'] }).fields).toEqual({ codes: 'Too many.' });
});

test('another language shows its sentences, and the English text of a code that it does not know', async () => {
	localStorage.setItem('headwater.language', 'de');
	vi.resetModules();
	const own = await import('./errors');
	const { loadSentences } = await import('$lib/i18n/gateway.svelte');
	await loadSentences();
	const full = { text: 'x', code: 'account_full', values: { account: 'Home', max: '2', streams: 'streams' } };
	const since = { detail: 'x; …', code: 'full_since', values: { refusal: full, seconds: '90' } };
	expect(own.errorOf(503, since).message).toBe(
		'Konto „Home“ hat alle Verbindungen in Gebrauch (höchstens 2); die längste läuft seit 90 s',
	);
	expect(own.errorOf(404, { detail: 'Odd.', code: 'from_later', values: {} }).message).toBe('Odd.');
	const codes = { name: [{ code: 'required', values: {} }, null] };
	const fields = own.errorOf(400, { name: ['This field is required.', 'Odd.'], codes }).fields;
	expect(fields).toEqual({ name: 'Bitte ausfüllen. Odd.' });
});
