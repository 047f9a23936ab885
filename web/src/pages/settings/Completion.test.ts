import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, expect, test, vi } from 'vitest';
import Completion from './Completion.svelte';

const STATE = {
	is_running: false,
	problem: null as string | null,
	attribution: '',
	titles: 5,
	done: 5,
	left_out: 0,
	found: 3,
	ambiguous: 1,
	unknown: 1,
	failed: 0,
	joined: 1,
	message: '',
	started_at: '2026-11-30T10:00:00Z',
	ended_at: '2026-11-30T10:01:00Z' as string | null,
};

afterEach(() => vi.unstubAllGlobals());

test('the last run is told with the sentence of the catalogue, and another one can be started and stopped', async () => {
	let state = STATE;
	const asked: string[] = [];
	vi.stubGlobal('fetch', async (request: Request) => {
		const path = new URL(request.url).pathname;
		asked.push(`${request.method} ${path}`);
		if (request.method === 'POST')
			state = { ...STATE, is_running: !path.endsWith('/stop/'), done: 2, ended_at: null };
		return Response.json(state);
	});
	render(Completion);
	await screen.findByText(/not endorsed or certified by TMDB/);
	await screen.findByText(/found 3\..*1 title was joined/s);
	await fireEvent.click(screen.getByRole('button', { name: 'Complete now' }));
	await screen.findByText('Completing: 2 of 5');
	await fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
	await waitFor(() => expect(screen.getByRole('button', { name: 'Complete now' })).toBeTruthy());
	expect(asked.filter((it) => it.startsWith('POST'))).toEqual([
		'POST /api/vod/completion/',
		'POST /api/vod/completion/stop/',
	]);
});

test('without a key nothing can be started, and the page says why', async () => {
	vi.stubGlobal('fetch', async () =>
		Response.json({ ...STATE, ended_at: null, problem: 'Set the key first.' }),
	);
	render(Completion);
	await screen.findByText('Set the key first.');
	const button = screen.getByRole('button', { name: 'Complete now' });
	expect((button as HTMLButtonElement).disabled).toBe(true);
});
