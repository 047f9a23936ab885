import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import AccountForm from './AccountForm.svelte';
import type { Account } from './accounts';

const ACCOUNT = {
	id: 7,
	name: 'Home',
	uploaded_file: 'a.m3u',
	allowed_networks: 'of_playlist',
	account_type: 'STD',
	further_addresses: [],
	custom_properties: {},
} as unknown as Account;

let changes: unknown[];
let refusal: object | undefined;

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	[changes, refusal] = [[], undefined];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		if (request.method === 'PATCH') {
			const body = (await request.json()) as object;
			if (refusal) return Response.json(refusal, { status: 400 });
			changes.push(body);
			return Response.json({ ...ACCOUNT, ...body });
		}
		return Response.json({ count: 1, hosts: ['10.255.255.1'] });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

test('the form says what a list may lead to, and an admin allows more', async () => {
	history.replaceState(null, '', '/sources/7?field=allowed_networks');
	router.read();
	render(AccountForm, { account: ACCOUNT, onsaved: vi.fn(), ondeleted: vi.fn() });
	const field = screen.getByLabelText<HTMLSelectElement>(/Networks that the list may lead into/);
	await screen.findByText(/refused: 10\.255\.255\.1/);
	// A message about a refused address has led here.
	await waitFor(() => expect(document.activeElement).toBe(field));
	expect(router.query.get('field')).toBeNull();
	await fireEvent.change(field, { target: { selectedIndex: 1 } });
	expect(screen.queryByText(/refused: /)).toBeNull();
	expect(screen.getByText(/10\.255\.255\.1/)).toBeTruthy();
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(changes).toEqual([{ allowed_networks: 'private' }]));
});

test('an admin accepts a certificate by its fingerprint', async () => {
	const account = { ...ACCOUNT, uploaded_file: null, server_url: 'https://p', verify_certificate: true };
	render(AccountForm, { account: account as unknown as Account, onsaved: vi.fn(), ondeleted: vi.fn() });
	expect(screen.getByLabelText<HTMLInputElement>(/Check certificates/).checked).toBe(true);
	const field = screen.getByLabelText(/Fingerprint of an accepted certificate/);
	await fireEvent.input(field, { target: { value: '12:AB' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(changes).toEqual([{ certificate_fingerprint: '12:AB' }]));
});

test('the form says which addresses of a panel are in use, and an admin chooses another form', async () => {
	const panel = {
		...ACCOUNT,
		account_type: 'XC',
		uploaded_file: null,
		server_url: 'http://panel.example',
		username: 'anna',
		live_form: 'auto',
		live_form_in_use: 'none',
		live_form_source: 'found',
	} as unknown as Account;
	render(AccountForm, { account: panel, onsaved: vi.fn(), ondeleted: vi.fn() });
	const field = screen.getByLabelText<HTMLSelectElement>(/Addresses of live streams/);
	const labels = [...field.options].map((it) => it.text);
	expect(labels).toEqual([
		'Automatic (found: without an extension)',
		'with .ts',
		'without an extension',
		'with .m3u8',
	]);
	await fireEvent.change(field, { target: { selectedIndex: 3 } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(changes).toEqual([{ live_form: 'm3u8' }]));
});

test('an admin changes the box of a portal, whose hidden values stay', async () => {
	const portal = {
		...ACCOUNT,
		account_type: 'STALKER',
		uploaded_file: null,
		server_url: 'http://portal.example',
		mac_address: '00:1A:79:**:**:**',
		device_model: '',
	} as unknown as Account;
	render(AccountForm, { account: portal, onsaved: vi.fn(), ondeleted: vi.fn() });
	expect(screen.getByLabelText<HTMLInputElement>(/MAC address/).value).toBe('00:1A:79:**:**:**');
	await fireEvent.input(screen.getByLabelText(/Model of the box/), { target: { value: 'MAG322' } });
	await fireEvent.input(screen.getByLabelText(/Serial number$/), { target: { value: 'S1' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(changes).toEqual([{ device_model: 'MAG322', serial_number: 'S1' }]));
	await fireEvent.click(screen.getByLabelText(/Remove the serial number/));
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	const removed = { serial_number: null, device_id: null, device_id2: null, signature: null };
	await waitFor(() => expect(changes[1]).toEqual(removed));
});

test('how long connections of a lost node count is set under "Advanced", which opens for an error', async () => {
	const account = { ...ACCOUNT, release_delay: 5, crash_cooling: null };
	const onsaved = vi.fn();
	const { container } = render(AccountForm, { account, onsaved, ondeleted: vi.fn() });
	const details = container.querySelector('details')!;
	const field = within(details).getByLabelText<HTMLInputElement>(/connections of a lost node/);
	expect([details.open, field.value]).toEqual([false, '']);
	await fireEvent.input(field, { target: { value: '90' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(onsaved).toHaveBeenCalled());
	expect(changes).toEqual([{ crash_cooling: 90 }]);
	refusal = { crash_cooling: ['Too long.'] };
	await fireEvent.input(field, { target: { value: '91' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await within(details).findByText('Too long.');
	expect(details.open).toBe(true);
});
