import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import AllowNetworks from './AllowNetworks.svelte';
import type { Refused } from './allowedNetworks';

const UUID = '11111111-1111-4111-8111-111111111111';
const REASON =
	'the address is not allowed: a provider in a public network may not lead into a private network; "allowed_networks" of the account allows it';
const entry = (stream_id: number | null, cause: string | null) => ({ stream_id, cause });

/** A gateway with these answers. Anything else is unknown to it. */
function gateway(answers: Record<string, unknown>): void {
	vi.stubGlobal('fetch', async (input: Request | string) => {
		const { pathname } = new URL(input instanceof Request ? input.url : input, location.href);
		const answer = answers[pathname];
		return Response.json(answer ?? { detail: 'Not found.' }, { status: answer ? 200 : 404 });
	});
}

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	history.replaceState(null, '', '/watch');
	router.read();
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

test('a refused address leads an admin to the setting of its account', async () => {
	gateway({
		[`/proxy/ts/timeline/${UUID}`]: {
			runs: [
				{ entries: [entry(4, 'forbidden_address'), entry(5, 'forbidden_address'), entry(6, 'stall')] },
				{ entries: [entry(9, 'forbidden_address')] },
			],
		},
		'/api/channels/streams/5/': { id: 5, m3u_account: 3 },
		'/api/channels/channels/8/streams/': [
			{ id: 6, m3u_account: 1, health: { last_cause: 'stall' } },
			{ id: 5, m3u_account: 3, health: { last_cause: 'forbidden_address' } },
		],
	});
	const known: Refused[] = [{ account: 3 }, { stream: 5 }, { uuid: UUID }, { channel: 8 }];
	for (const refused of known) {
		history.replaceState(null, '', '/watch');
		router.read();
		const { unmount } = render(AllowNetworks, { reason: REASON, refused });
		await fireEvent.click(screen.getByRole('button', { name: 'Change the allowed networks' }));
		await waitFor(() => expect(router.path).toBe('/sources/3'));
		expect(router.query.get('field')).toBe('allowed_networks');
		unmount();
	}
});

test('an account that is not known any more leads to the list of the sources', async () => {
	gateway({});
	render(AllowNetworks, { reason: REASON, refused: { uuid: UUID } });
	await fireEvent.click(screen.getByRole('button'));
	await waitFor(() => expect(router.path).toBe('/sources'));
});

test('other reasons, and viewers, have no such button', () => {
	const shown = (reason: string | null): boolean => {
		const { unmount } = render(AllowNetworks, { reason, refused: { account: 3 } });
		const found = screen.queryByRole('button') !== null;
		unmount();
		return found;
	};
	expect(shown(REASON)).toBe(true);
	for (const other of [
		null,
		'',
		'the provider answered with status 404',
		'a provider may not lead to the gateway itself',
		'a provider may not lead to link-local addresses and metadata services',
	])
		expect(shown(other)).toBe(false);
	session.user = { id: 2, username: 'ben', user_level: 1, is_superuser: false } as typeof session.user;
	expect(shown(REASON)).toBe(false);
});
