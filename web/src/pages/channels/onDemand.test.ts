import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { navigate } from '$lib/router';
import Channels from './Channels.svelte';

const CHANNEL = {
	id: 1,
	name: 'One',
	channel_number: 10,
	channel_group_id: null,
	channel_group_name: null,
	epg_data_id: null,
	effective_epg_data_id: null,
	further_epg_data_ids: [],
	edited_fields: [],
	logo_id: null,
	logo_url: null,
	enabled: true,
	streams: [],
	auto_created: false,
};

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
		this.open = true;
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname } = new URL(request.url);
		if (pathname === '/api/channels/channels/1/') return Response.json(CHANNEL);
		const results = pathname === '/api/channels/channels/' ? [CHANNEL] : [];
		return Response.json({ count: results.length, results, next: null, previous: null });
	});
	navigate('/channels');
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
	navigate('/');
});

test('the panel of a channel comes with its first use', async () => {
	render(Channels, { id: '1' });
	const name = await screen.findByLabelText<HTMLInputElement>(/^Name/);
	expect(name.value).toBe('One');
});

test('a dialog for selected channels comes with its first use, and again after it was closed', async () => {
	render(Channels, {});
	await fireEvent.click(await screen.findByRole('checkbox', { name: 'Select 1' }));
	for (let n = 0; n < 2; n += 1) {
		await fireEvent.click(await screen.findByRole('button', { name: 'Rename' }));
		await screen.findByRole('heading', { name: /Rename/, hidden: true });
		await fireEvent.click(screen.getByRole('button', { name: 'Cancel', hidden: true }));
		expect(screen.queryByRole('heading', { name: /Rename/, hidden: true })).toBeNull();
	}
});
