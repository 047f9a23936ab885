import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, expect, test, vi } from 'vitest';
import Commercials from './Commercials.svelte';
import ComskipSettings from './ComskipSettings.svelte';
import type { Recording } from './recordings';

afterEach(() => vi.unstubAllGlobals());

/** A gateway that answers with the status and the body of a function, and notes what it was asked. */
function gateway(answer: (method: string, body: unknown) => [number, unknown]): string[] {
	const asked: string[] = [];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const text = request.method === 'PUT' ? await request.text() : '';
		asked.push(`${request.method} ${new URL(request.url).pathname} ${text}`.trim());
		const [status, body] = answer(request.method, text ? JSON.parse(text) : null);
		const headers = { 'Content-Type': 'application/json' };
		return new Response(JSON.stringify(body), { status, headers });
	});
	return asked;
}

test('a wrong line of the configuration is named at its field, and a right one is saved', async () => {
	const config = { enabled: false, config: '', path: '', exists: false, available: false };
	const asked = gateway((method, body) => {
		const sent = body as { enabled: boolean; config: string } | null;
		if (sent?.config === 'wrong') return [400, { config: ['Line 1: `key=value` is needed.'] }];
		return [200, method === 'PUT' ? { ...config, ...sent } : config];
	});
	render(ComskipSettings);
	await screen.findByText(/is not installed/);
	const field = screen.getByLabelText(/Configuration/);
	await fireEvent.input(field, { target: { value: 'wrong' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await screen.findByText(/^Line 1:/);
	await fireEvent.input(field, { target: { value: 'detect_method=43' } });
	await fireEvent.click(screen.getByLabelText(/after each recording/));
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await vi.waitFor(() =>
		expect(asked.at(-1)).toBe(
			'PUT /api/channels/dvr/comskip-config/ {"enabled":true,"config":"detect_method=43"}',
		),
	);
	await vi.waitFor(() => expect(screen.queryByText(/^Line 1:/)).toBeNull());
});

test('found commercials are listed with their times, and a search is requested', async () => {
	const commercials = [
		{ start: 620.5, end: 980.25 },
		{ start: 2000, end: 2100 },
	];
	const comskip = { status: 'completed', reason: null, commercials, edl_file: null };
	const recording = { id: 4, comskip } as Recording;
	const asked = gateway(() => [200, { ...recording, comskip: { ...comskip, status: 'queued' } }]);
	const onchanged = vi.fn();
	const { rerender } = render(Commercials, { recording, onchanged });
	screen.getByText(/2 breaks, 7 min 39 s/);
	expect(screen.getAllByRole('row').map((it) => it.textContent?.trim().split(/\s+/)[0])).toHaveLength(3);
	screen.getByText('10:20');
	await fireEvent.click(screen.getByRole('button', { name: 'Search for commercials' }));
	await vi.waitFor(() => expect(onchanged).toHaveBeenCalledOnce());
	expect(asked).toEqual(['POST /api/channels/recordings/4/comskip/']);
	await rerender({ recording: onchanged.mock.calls[0]?.[0] as Recording, onchanged });
	expect(screen.queryByRole('button', { name: 'Search for commercials' })).toBeNull();
});
