import { expect, test } from 'vitest';
import { isEditable, MASK, readField, settingsOf, valuesOf } from './fields';

const fields = [
	{ id: 'on', label: 'On', type: 'boolean', default: true },
	{ id: 'n', type: 'number', min: 1 },
	{ id: 'word', label: 'Word', help_text: 'Any word', placeholder: 'hello', default: 'hello' },
	{ id: 'note', type: 'text' },
	{ id: 'mode', type: 'select', options: [{ value: 1, label: 'One' }, '1', true, { label: 'no value' }] },
	{ id: 'key', type: 'string', input_type: 'password' },
	{ type: 'info', label: 'Read this', description: 'First.' },
	{ id: 'colour', type: 'colour' },
	{ id: 'list', type: 'constructor', default: [1] },
].map(readField);

test('fields are read as the gateway reads them', () => {
	const kinds = fields.map((it) => it.kind);
	expect(kinds).toEqual([
		'boolean',
		'number',
		'string',
		'text',
		'select',
		'string',
		'info',
		'other',
		'other',
	]);
	expect(fields[1]).toMatchObject({ label: 'n', min: 1 });
	expect(fields[2]).toMatchObject({ hint: 'Any word', placeholder: 'hello', isPassword: false });
	expect(fields[4]?.options).toEqual([
		{ value: '1', label: 'One' },
		{ value: '"1"', label: '1' },
		{ value: 'true', label: 'true' },
	]);
	expect([fields[5]?.isPassword, readField({ id: 'p', type: 'password' }).isPassword]).toEqual([true, true]);
	expect(fields[6]).toMatchObject({ id: '', text: 'First.' });
	expect(fields.filter((it) => !isEditable(it, {})).map((it) => it.type)).toEqual(['info', 'constructor']);
});

test('a value of a field without options is typed', () => {
	for (const options of [undefined, null, [], 'from code', [{ label: 'no value' }]]) {
		const field = readField({ id: 'which', type: 'select', default: '', options });
		expect([field.kind, isEditable(field, {}), valuesOf([field], { which: 'b' })]).toEqual([
			'string',
			true,
			{ which: 'b' },
		]);
		expect(settingsOf([field], {}, { which: 'c' })).toEqual({ which: 'c' });
	}
});

test('the form shows saved settings, else defaults', () => {
	expect(valuesOf(fields, {})).toEqual({
		on: true,
		n: null,
		word: 'hello',
		note: '',
		mode: null,
		key: '',
		colour: '',
	});
	const saved = { on: false, n: 2.5, word: 'bye', mode: '1', key: MASK, colour: 'red', gone: 7 };
	expect(valuesOf(fields, saved)).toMatchObject({ on: false, n: 2.5, word: 'bye', mode: '"1"', key: MASK });
	expect(valuesOf(fields, { n: 'x', mode: 9 })).toMatchObject({ n: null, mode: null });
});

test('changed settings are sent with all others, in their types', () => {
	const saved = { word: 'bye', key: MASK, gone: 7 };
	expect(settingsOf(fields, saved, { mode: '1', n: null, on: false })).toEqual({
		word: 'bye',
		key: MASK,
		gone: 7,
		mode: 1,
		n: null,
		on: false,
	});
	expect(settingsOf(fields, saved, { mode: '"1"', key: '' })).toMatchObject({ mode: '1', key: '' });
	// A text that looks like JSON stays a text.
	expect(settingsOf(fields, {}, { word: '1' })).toEqual({ word: '1' });
});
