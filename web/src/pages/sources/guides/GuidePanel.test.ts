import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import GuidePanel from './GuidePanel.svelte';

const GUIDE = {
	id: 3,
	name: 'Guide',
	url: 'http://guide.example/all.xml',
	source_type: 'xmltv',
	refresh_interval: 24,
	is_active: true,
	status: 'success',
	custom_properties: {},
};

let saved: Record<string, unknown>;
let version: number;
/** The condition and the body of each write. */
let writes: [string | null, unknown][];

const answer = (status = 200) => Response.json(saved, { status, headers: { ETag: `W/"${version}"` } });

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	[saved, version, writes] = [{ ...GUIDE }, 1, []];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		if (request.method !== 'PATCH') {
			return request.url.endsWith('/sources/3/') ? answer() : Response.json({ count: 0, results: [] });
		}
		const condition = request.headers.get('If-Match');
		const body = (await request.json()) as object;
		writes.push([condition, body]);
		if (condition !== `W/"${version}"`) return answer(412);
		saved = { ...saved, ...body };
		version += 1;
		return answer();
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

test('a guide that somebody else has saved meanwhile is shown in both versions', async () => {
	render(GuidePanel, { id: 3, onclose: vi.fn(), onsaved: vi.fn() });
	const name = await screen.findByLabelText<HTMLInputElement>(/^Name/);
	await waitFor(() => expect(name.value).toBe('Guide'));
	await fireEvent.input(name, { target: { value: 'Mine' } });
	[saved, version] = [{ ...saved, name: 'Theirs' }, 2];
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	const alert = await screen.findByRole('alert');
	expect(alert.textContent).toContain('Yours: Mine');
	expect(alert.textContent).toContain('Saved: Theirs');
	expect(alert.querySelector('strong')?.textContent).toMatch(/^Name/);
	await fireEvent.click(screen.getByRole('button', { name: /Take the saved value/ }));
	expect(screen.getByLabelText<HTMLInputElement>(/^Name/).value).toBe('Theirs');
	await fireEvent.input(screen.getByLabelText(/^Name/), { target: { value: 'Both' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(saved.name).toBe('Both'));
	expect(writes).toEqual([
		['W/"1"', { name: 'Mine' }],
		['W/"2"', { name: 'Both' }],
	]);
});
