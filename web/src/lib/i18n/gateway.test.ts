import { expect, test } from 'vitest';
import { filled, gatewayText } from './gateway.svelte';

const known = {
	refreshed: '{n} neu. {more}',
	failed: 'Fehler: {cause}',
	stalled: 'steht still',
	since: 'seit {time}',
};

test.each([
	['failed', { cause: 'odd' }, 'Fehler: odd'],
	['failed', { cause: { text: 'x', code: 'stalled', values: {} } }, 'Fehler: steht still'],
	['failed', { cause: { text: 'x', code: 'from_later', values: {} } }, 'Fehler: x'],
	// A sentence without another one after it, and a value that is missing.
	['refreshed', { n: '5', more: '' }, '5 neu.'],
	['refreshed', {}, 'neu.'],
	['refreshed', undefined, 'neu.'],
	['from_later', { n: '5' }, null],
])('the sentence for %s with %o', (code, values, sentence) =>
	expect(filled(known, { code, values })).toBe(sentence),
);

test('a time in a text is written as the reader writes times', () => {
	const sentence = filled(known, { code: 'since', values: { time: '2031-05-04T07:08:09.000Z' } });
	expect(sentence).toMatch(/^seit .*2031/);
	expect(sentence).not.toContain('T07');
});

test('in English, and without a code, the text of the gateway is shown as it is', () => {
	expect(gatewayText('Not found.', { code: 'not_found', values: {} })).toBe('Not found.');
	expect(gatewayText('Odd.', null)).toBe('Odd.');
	expect(gatewayText(null, undefined)).toBe('');
});
