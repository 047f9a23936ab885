import { expect, test } from 'vitest';
import { ApiError } from '$lib/api';
import { FormState } from './form.svelte';

test('only changed fields are sent, and errors appear at their fields', async () => {
	const sent: unknown[] = [];
	let refusal: ApiError | null = new ApiError(400, 'refused', { name: 'Taken.', other: 'Odd.' });
	const form = new FormState({
		initial: { name: 'a', count: 1, tags: ['x'] },
		save: async (_values, changed) => {
			sent.push(changed);
			if (refusal) throw refusal;
		},
	});
	expect(form.isDirty).toBe(false);
	form.values.name = 'b';
	form.values.tags = ['x'];
	expect(await form.submit()).toBe(false);
	expect([form.errors, form.message, form.isDirty]).toEqual([{ name: 'Taken.' }, 'other: Odd.', true]);
	refusal = null;
	expect(await form.submit()).toBe(true);
	expect(sent).toEqual([{ name: 'b' }, { name: 'b' }]);
	expect([form.isDirty, form.errors, form.message]).toEqual([false, {}, null]);
});

test('a failure that belongs to no field is a message', async () => {
	const form = new FormState({
		initial: { a: 1 },
		save: () => Promise.reject(new ApiError(0, 'not reached')),
	});
	await form.submit();
	expect(form.message).toBe('not reached');
});
