import { fireEvent, render, screen } from '@testing-library/svelte';
import { expect, test } from 'vitest';
import { ApiError } from '$lib/api';
import Conflicts from './Conflicts.svelte';
import CopyText from './CopyText.svelte';
import FileField from './FileField.svelte';
import { FormState } from './form.svelte';
import TextField from './TextField.svelte';

/** Chooses a file, as far as this environment can: the value of the input stands for its name. */
async function choose(input: HTMLInputElement): Promise<void> {
	Object.defineProperty(input, 'files', { configurable: true, value: [new File(['a'], 'a.zip')] });
	Object.defineProperty(input, 'value', { configurable: true, writable: true, value: 'a.zip' });
	await fireEvent.change(input);
}

test('the field of a file is empty once the form drops a refused file', async () => {
	let file: File | null | undefined;
	const props = { label: 'Archive', file, onfile: (it: File) => (file = it) };
	const { rerender } = render(FileField, props);
	const input = screen.getByLabelText<HTMLInputElement>('Archive');
	await choose(input);
	await rerender({ ...props, file });
	expect([input.value, file?.name]).toEqual(['a.zip', 'a.zip']);
	await rerender({ ...props, file: null, error: 'broken' });
	expect(input.value).toBe('');
});

test.each([
	['was taken', () => Promise.resolve()],
	['was refused', () => Promise.reject(new Error('broken'))],
])('the field of a file that %s at once is empty again', async (_, onfile) => {
	render(FileField, { label: 'Archive', onfile });
	const input = screen.getByLabelText<HTMLInputElement>('Archive');
	await choose(input);
	await expect.poll(() => input.value).toBe('');
});

test('secrets are hidden in the same way until they are asked for', async () => {
	render(CopyText, { label: 'Key', value: 'k-1', secret: true });
	render(TextField, { label: 'Password', type: 'password', value: 'p-1' });
	const inputs = [
		screen.getByLabelText<HTMLInputElement>('Key'),
		screen.getByLabelText<HTMLInputElement>('Password'),
	];
	expect(inputs.map((it) => it.type)).toEqual(['password', 'password']);
	for (const name of ['Show: Key', /^Show\s*: Password/])
		await fireEvent.click(screen.getByRole('button', { name }));
	expect(inputs.map((it) => it.type)).toEqual(['text', 'text']);
});

test('a password that two people have changed is not shown', async () => {
	const form = new FormState({
		initial: { name: 'a', password: 'old' },
		save: () => Promise.reject(new ApiError(412, '', {}, { name: 'b', password: 'their-secret' })),
		valuesOf: (it: { name: string; password: string }) => it,
	});
	render(TextField, { form, name: 'name', label: 'Name' });
	render(TextField, { form, name: 'password', label: 'Password', type: 'password' });
	form.values = { name: 'c', password: 'own-secret' };
	await form.submit();
	const element = document.body as unknown as HTMLFormElement;
	render(Conflicts, { form: form as unknown as FormState<object, unknown>, element });
	expect(form.conflicts.map((it) => it.name)).toEqual(['name', 'password']);
	const shown = screen.getByRole('alert').textContent ?? '';
	expect(shown).toContain('b');
	expect(shown).not.toContain('secret');
});
