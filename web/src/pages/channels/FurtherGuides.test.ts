import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { FormState } from '$lib/ui/form.svelte';
import FurtherGuides from './FurtherGuides.svelte';

const CHANNELS = [
	{ id: 11, name: 'News', tvg_id: 'news', epg_source: 1 },
	{ id: 12, name: 'Sport', tvg_id: 'sport', epg_source: 1 },
];

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const { pathname } = new URL(request.url);
		if (pathname === '/api/epg/epgdata/')
			return Response.json({ count: 2, results: CHANNELS, next: null, previous: null });
		const found = CHANNELS.find((it) => pathname === `/api/epg/epgdata/${it.id}/`);
		return found ? Response.json(found) : Response.json({ detail: 'Not found.' }, { status: 404 });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const formOf = (further_epg_data_ids: number[]) =>
	new FormState({ initial: { further_epg_data_ids }, save: async (values) => values });

test('guide channels are ordered, added and removed; one that is gone has its number', async () => {
	const form = formOf([11, 99]);
	form.errors = { further_epg_data_ids: 'Guide channel 99 does not exist.' };
	render(FurtherGuides, { form });
	await screen.findByText('News');
	expect(screen.getByText('Guide channel 99')).toBeTruthy();
	expect(screen.getByText('Guide channel 99 does not exist.')).toBeTruthy();
	await fireEvent.click(screen.getByRole('button', { name: 'Move Guide channel 99 up' }));
	expect([...form.values.further_epg_data_ids]).toEqual([99, 11]);
	expect(form.errors).toEqual({});
	await fireEvent.click(screen.getByRole('button', { name: 'Remove the guide channel Guide channel 99' }));
	const field = screen.getByRole('combobox', { name: /Add a further/ });
	await fireEvent.focus(field);
	await fireEvent.input(field, { target: { value: 'sp' } });
	await fireEvent.click(await screen.findByRole('option', { name: /Sport/ }));
	await waitFor(() => expect([...form.values.further_epg_data_ids]).toEqual([11, 12]));
	await screen.findByText('Sport');
});

test('no more than four can be added', async () => {
	render(FurtherGuides, { form: formOf([11, 12, 13, 14]) });
	await screen.findByText('News');
	expect(screen.queryByRole('combobox')).toBeNull();
});
