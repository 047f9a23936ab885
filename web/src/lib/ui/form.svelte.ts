import { ApiError, ifUnchanged, problem } from '$lib/api';
import { leaveGuard } from '$lib/router';

export interface FormOptions<V extends object, A> {
	initial: V;
	/**
	 * `changed` has only the fields that differ from `initial`. With `headers`, a record that has changed since it was
	 * shown is not overwritten.
	 */
	save: (values: V, changed: Partial<V>, headers: Record<string, string>) => Promise<A>;
	onSaved?: (answer: A) => unknown;
	/** Reads the values from the record, for a form that shows one with `show`. */
	valuesOf?: (record: A) => V;
}

/** A field that two people have changed. */
export interface Conflict<V> {
	name: keyof V & string;
	own: unknown;
	/** What somebody else has saved. */
	saved: unknown;
}

/** Others may save again and again. */
const ATTEMPTS_MAX = 3;

const same = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

/** The values of a form, its errors by field, and how it is saved. Live data never changes a form in use. */
export class FormState<V extends object = Record<string, unknown>, A = unknown> {
	values: V = $state() as V;
	errors = $state<Record<string, string>>({});
	message = $state<string | null>(null);
	/** Fields that somebody else has saved meanwhile; the next submission overwrites them. */
	conflicts = $state.raw<Conflict<V>[]>([]);
	isSaving = $state(false);

	#initial: V = $state.raw() as V;
	/** The record that the form shows. */
	#record: A | undefined;
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
		this.conflicts = [];
	}

	/** Shows a record, unless the form is in use. */
	show(record: A): void {
		if (this.isDirty) return;
		this.#record = record;
		this.reset(this.#options.valuesOf?.(record));
	}

	async submit(): Promise<boolean> {
		if (this.isSaving) return false;
		this.isSaving = true;
		this.errors = {};
		this.message = null;
		this.conflicts = [];
		try {
			await this.#save(ATTEMPTS_MAX);
			return true;
		} catch (error) {
			this.#refused(error);
			return false;
		} finally {
			this.isSaving = false;
		}
	}

	async #save(attempts: number): Promise<void> {
		const sent = $state.snapshot(this.values) as V;
		let answer: A;
		try {
			answer = await this.#options.save(sent, this.changed, ifUnchanged(this.#record));
		} catch (error) {
			const record = this.#takeOver(error);
			if (record === undefined || this.conflicts.length > 0 || attempts <= 1) throw error;
			// What others have saved elsewhere in the record stays. If they have saved the same, nothing is left to do.
			if (this.isDirty) return this.#save(attempts - 1);
			answer = record;
		}
		this.#initial = structuredClone(sent);
		this.#record = answer;
		await this.#options.onSaved?.(answer);
	}

	/**
	 * Takes over a record that somebody else has saved meanwhile, except for own changes. Returns the record, if the error
	 * is about that.
	 */
	#takeOver(error: unknown): A | undefined {
		const { valuesOf } = this.#options;
		if (!(error instanceof ApiError) || error.status !== 412 || !valuesOf) return undefined;
		const record = error.body as A;
		const saved = valuesOf(record);
		const own = this.changed;
		const names = Object.keys(own) as (keyof V & string)[];
		this.conflicts = names
			.filter((it) => !same(saved[it], this.#initial[it]) && !same(saved[it], own[it]))
			.map((name) => ({ name, own: own[name], saved: saved[name] }));
		this.#record = record;
		this.#initial = structuredClone(saved);
		this.values = { ...structuredClone(saved), ...structuredClone(own) };
		return record;
	}

	/** Takes the value that somebody else has saved. */
	useSaved(name: keyof V & string): void {
		this.values[name] = structuredClone(this.#initial[name]);
		this.conflicts = this.conflicts.filter((it) => it.name !== name);
	}

	/** Whether a field of the form has this name, or contains the part with this name. */
	#isOwn(name: string): boolean {
		return name in this.values || (name.split('.')[0] ?? '') in this.values;
	}

	#refused(error: unknown): void {
		if (this.conflicts.length > 0) return;
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
