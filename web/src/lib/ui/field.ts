import type { FormState } from './form.svelte';

/* eslint-disable-next-line @typescript-eslint/no-explicit-any -- a field belongs to a form of any values */
export type AnyForm = FormState<any, any>;

/** A field of a form, or one that stands alone. */
export interface FieldProps<T> {
	form?: AnyForm;
	name?: string;
	value?: T;
	onvalue?: (value: T) => unknown;
	error?: string;
	label: string;
	hint?: string;
	required?: boolean;
	disabled?: boolean;
}

/** Returns the value of a field. */
export function read<T>(it: FieldProps<T>): T {
	return it.form && it.name ? (it.form.values[it.name] as T) : (it.value as T);
}

export function write<T>(it: FieldProps<T>, value: T): void {
	if (it.form && it.name) {
		it.form.values[it.name] = value;
		if (it.form.errors[it.name]) {
			const { [it.name]: _, ...others } = it.form.errors;
			it.form.errors = others;
		}
	}
	it.onvalue?.(value);
}

/** Returns the ids of what describes a field: its error, and its hint. */
export const describedBy = (
	id: string,
	error: string | undefined,
	hint: string | undefined,
): string | undefined =>
	[error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ') || undefined;

/** Returns the error of a field, or of a part of it. */
export function errorOf<T>(it: FieldProps<T>): string | undefined {
	if (it.error || !it.form || !it.name) return it.error;
	const own = it.form.errors[it.name];
	if (own) return own;
	const part = Object.entries(it.form.errors).find(([name]) => name.startsWith(`${it.name}.`));
	return part?.[1];
}
