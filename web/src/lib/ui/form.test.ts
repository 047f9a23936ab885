import { expect, test } from 'vitest';
import { ApiError, ok } from '$lib/api';
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

interface Show {
	name: string;
	hour: number;
	tags: string[];
}

/** A gateway with one record, which others change too. */
function gateway(record: Show) {
	const state = { record, version: 1, attempts: [] as (string | undefined)[] };
	const answer = (status: number) => {
		const response = new Response(null, { status, headers: { ETag: `"${state.version}"` } });
		const body = { ...state.record };
		return ok(Promise.resolve(status === 200 ? { data: body, response } : { error: body, response }));
	};
	const change = (changed: Partial<Show>) => {
		state.record = { ...state.record, ...changed };
		state.version += 1;
	};
	const save = (_: Show, changed: Partial<Show>, headers: Record<string, string>) => {
		state.attempts.push(headers['If-Match']);
		if (headers['If-Match'] !== `"${state.version}"`) return answer(412);
		change(changed);
		return answer(200);
	};
	return { state, change, save, read: () => answer(200) };
}

async function shown(it: ReturnType<typeof gateway>) {
	const form = new FormState<Show, Show>({
		initial: { name: '', hour: 0, tags: [] },
		save: it.save,
		valuesOf: (record) => ({ ...record }),
	});
	form.show(await it.read());
	return form;
}

test('what somebody else has saved elsewhere in the record stays', async () => {
	const it = gateway({ name: 'News', hour: 20, tags: [] });
	const form = await shown(it);
	form.values.name = 'Evening news';
	it.change({ hour: 21 });
	expect(await form.submit()).toBe(true);
	expect(it.state.attempts).toEqual(['"1"', '"2"']);
	expect(it.state.record).toEqual({ name: 'Evening news', hour: 21, tags: [] });
	expect([form.values.hour, form.isDirty, form.conflicts]).toEqual([21, false, []]);
	// The next change is one of the record that was saved.
	form.values.name = 'Late news';
	expect([await form.submit(), it.state.attempts.length]).toEqual([true, 3]);
});

test('a field that two people have changed is shown in both versions, and overwritten only by a second submission', async () => {
	const it = gateway({ name: 'News', hour: 20, tags: ['a'] });
	const form = await shown(it);
	Object.assign(form.values, { name: 'Mine', hour: 19, tags: ['b'] });
	it.change({ name: 'Theirs', hour: 19, tags: ['c'] });
	expect(await form.submit()).toBe(false);
	expect(form.conflicts).toEqual([
		{ name: 'name', own: 'Mine', saved: 'Theirs' },
		{ name: 'tags', own: ['b'], saved: ['c'] },
	]);
	expect([form.message, it.state.record.name]).toEqual([null, 'Theirs']);
	form.useSaved('tags');
	expect([form.values.tags, form.conflicts.length]).toEqual([['c'], 1]);
	expect(await form.submit()).toBe(true);
	expect(it.state.record).toEqual({ name: 'Mine', hour: 19, tags: ['c'] });
	expect(form.conflicts).toEqual([]);
});

test('the same change by two people is saved', async () => {
	const it = gateway({ name: 'News', hour: 20, tags: [] });
	const form = await shown(it);
	form.values.name = 'Same';
	it.change({ name: 'Same' });
	expect([await form.submit(), form.isDirty, it.state.attempts.length]).toEqual([true, false, 1]);
});

test('a record that is saved without end is given up', async () => {
	const it = gateway({ name: 'News', hour: 20, tags: [] });

	const { save } = it;
	let n = 0;
	const busy = new FormState<Show, Show>({
		initial: { name: '', hour: 0, tags: [] },
		save: (...all) => {
			it.change({ hour: n++ });
			return save(...all);
		},
		valuesOf: (record) => ({ ...record }),
	});
	busy.show(await it.read());
	busy.values.name = 'Mine';
	expect(await busy.submit()).toBe(false);
	expect([it.state.attempts.length, busy.isDirty, busy.message === null]).toEqual([3, true, false]);
});
