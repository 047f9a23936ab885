import { ApiError, problem } from '$lib/api';
import { leaveGuard } from '$lib/router';

export interface FormOptions<V extends object, A> {
	initial: V;
	/** `changed` has only the fields that differ from `initial`. */
	save: (values: V, changed: Partial<V>) => Promise<A>;
	onSaved?: (answer: A) => unknown;
}

const same = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

/** The values of a form, its errors by field, and how it is saved. Live data never changes a form in use. */
export class FormState<V extends object = Record<string, unknown>, A = unknown> {
	values: V = $state() as V;
	errors = $state<Record<string, string>>({});
	message = $state<string | null>(null);
	isSaving = $state(false);

	#initial: V = $state.raw() as V;
	#options: FormOptions<V, A>;

	constructor(options: FormOptions<V, A>) {
		this.#options = options;
		this.#initial = structuredClone(options.initial);
		this.values = structuredClone(options.initial);
	}

	get changed(): Partial<V> {
		const now = $state.snapshot(this.values) as V;
		const entries = Object.entries(now).filter(
			([name, value]) => !same(value, this.#initial[name as keyof V]),
		);
		return Object.fromEntries(entries) as Partial<V>;
	}

	get isDirty(): boolean {
		return Object.keys(this.changed).length > 0;
	}

	reset(values?: V): void {
		if (values) this.#initial = structuredClone($state.snapshot(values) as V);
		this.values = structuredClone(this.#initial);
		this.errors = {};
		this.message = null;
	}

	async submit(): Promise<boolean> {
		if (this.isSaving) return false;
		this.isSaving = true;
		this.errors = {};
		this.message = null;
		try {
			const sent = $state.snapshot(this.values) as V;
			const answer = await this.#options.save(sent, this.changed);
			this.#initial = structuredClone(sent);
			await this.#options.onSaved?.(answer);
			return true;
		} catch (error) {
			this.#refused(error);
			return false;
		} finally {
			this.isSaving = false;
		}
	}

	/** Whether a field of the form has this name, or contains the part with this name. */
	#isOwn(name: string): boolean {
		return name in this.values || (name.split('.')[0] ?? '') in this.values;
	}

	#refused(error: unknown): void {
		const fields = error instanceof ApiError ? error.fields : {};
		const own = Object.entries(fields).filter(([name]) => this.#isOwn(name));
		this.errors = Object.fromEntries(own);
		const others = Object.entries(fields).filter(([name]) => !(name in this.errors));
		if (own.length === 0) this.message = problem(error);
		else if (others.length > 0) this.message = others.map(([name, text]) => `${name}: ${text}`).join(' ');
	}
}

/** In a component: a form that asks before unsaved input is left. */
export function createForm<V extends object, A>(options: FormOptions<V, A>): FormState<V, A> {
	const form = new FormState(options);
	leaveGuard(() => form.isDirty && !form.isSaving);
	return form;
}
