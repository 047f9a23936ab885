import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, expect, test, vi } from 'vitest';
import Repositories from './Repositories.svelte';

const REPOSITORY = {
	id: 1,
	name: 'Me/Plugins',
	url: 'https://example.com/manifest.json',
	public_key: '',
	signature: 'verified',
	signature_verified: true,
	plugin_count: 2,
	faults: ['Left entry 3 of the list out: it has no slug.'],
	last_fetched: null,
	error: '',
	created_at: '2026-11-30T10:00:00Z',
};
const offer = (slug: string, more: object) => ({
	repo_id: 1,
	repo_name: 'Me/Plugins',
	slug,
	name: slug,
	description: `About ${slug}`,
	author: 'me',
	license: 'MIT',
	deprecated: false,
	latest_version: '1.1',
	is_signed: true,
	installed_key: null,
	installed_version: null,
	update_available: false,
	...more,
});

afterEach(() => vi.unstubAllGlobals());

test('plugins of a repository are listed, installed and updated, and its faults are shown', async () => {
	const sent: unknown[] = [];
	vi.stubGlobal('fetch', async (request: Request) => {
		const path = new URL(request.url).pathname;
		if (path === '/api/plugins/repos/install/') {
			sent.push(await request.json());
			return Response.json({ success: true, plugin: { key: 'one', name: 'one', version: '1.1' } });
		}
		if (path === '/api/plugins/repos/available/')
			return Response.json({
				plugins: [
					offer('one', {}),
					offer('two', { installed_key: 'two', installed_version: '1.0', update_available: true }),
					offer('three', { installed_key: 'three', installed_version: '1.1' }),
				],
			});
		return Response.json({ count: 1, next: null, previous: null, results: [REPOSITORY] });
	});
	const onchanged = vi.fn(async () => {});
	render(Repositories, { onchanged });
	await screen.findByText('signed with your key');
	expect(screen.getByText(/Left entry 3/)).toBeTruthy();
	await fireEvent.click(await screen.findByRole('button', { name: 'Install one' }));
	await waitFor(() => expect(sent.length).toBe(1));
	await fireEvent.click(await screen.findByRole('button', { name: 'Update two' }));
	await waitFor(() => expect(onchanged).toHaveBeenCalledTimes(2));
	expect(screen.queryByRole('button', { name: /three/ })).toBeNull();
	expect(sent).toEqual([
		{ repo_id: 1, slug: 'one', overwrite: false },
		{ repo_id: 1, slug: 'two', overwrite: false },
	]);
});
