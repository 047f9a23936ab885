import { fireEvent, render, screen } from '@testing-library/svelte';
import { expect, it } from 'vitest';
import NumberField from './NumberField.svelte';

it('a number that is half typed stays in the field, and becomes a value later', async () => {
	const values: (number | null)[] = [];
	render(NumberField, { label: 'Seconds', value: 3, onvalue: (it: number | null) => values.push(it) });
	const input = screen.getByLabelText<HTMLInputElement>('Seconds');
	expect(input.value).toBe('3');
	await fireEvent.input(input, { target: { value: '' } });
	await fireEvent.input(input, { target: { value: '-5' } });
	expect(values).toEqual([null, -5]);
	expect(input.value).toBe('-5');
});
