import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import UserPanel from './UserPanel.svelte';

const USER = {
	id: 7,
	username: 'child',
	email: '',
	user_level: 0,
	is_active: true,
	exp_date: null,
	stream_limit: 0,
	channel_profiles: [],
	channel_group_ids: [2, 9],
	allowed_hours: { time_zone: 'Europe/Berlin', mon: ['07:00-19:30'], sat: ['09:00-12:00', '14:00-24:00'] },
	sleep_until: null as string | null,
	custom_properties: {},
};

let stored: typeof USER;
let sent: Record<string, unknown>[];

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	history.replaceState(null, '', '/users/7');
	router.read();
	stored = { ...USER };
	sent = [];
	vi.stubGlobal('fetch', async (request: Request) => {
		const path = new URL(request.url).pathname;
		if (path === '/api/channels/groups/')
			return Response.json({
				results: [
					{ id: 1, name: 'News' },
					{ id: 2, name: 'Kids' },
				],
			});
		if (path !== '/api/accounts/users/7/') return Response.json({ results: [] });
		if (request.method === 'PATCH') {
			const body = (await request.json()) as Record<string, unknown>;
			sent.push(body);
			const minutes = body.sleep_minutes as number | undefined;
			const until = minutes ? new Date(Date.now() + minutes * 60_000).toISOString() : null;
			stored = { ...stored, ...body, ...(minutes === undefined ? {} : { sleep_until: until }) };
		}
		return Response.json(stored);
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const show = () =>
	render(UserPanel, { id: 7, viewers: [], onclose: () => undefined, onsaved: () => undefined });
const field = (label: string) => screen.getByLabelText<HTMLInputElement>(label);

test('the allowed hours of a user are shown, changed and sent', async () => {
	show();
	await screen.findByText('Allowed hours', { selector: 'legend' });
	expect(field('Saturday, hours 2, until').value).toBe('00:00');
	await fireEvent.change(field('Monday, hours 1, from'), { target: { value: '08:15' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Add hours on Sunday' }));
	await fireEvent.click(screen.getByRole('button', { name: 'Remove hours 1 on Saturday' }));
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(sent).toHaveLength(1));
	expect(sent[0]).toEqual({
		allowed_hours: {
			time_zone: 'Europe/Berlin',
			mon: ['08:15-19:30'],
			tue: [],
			wed: [],
			thu: [],
			fri: [],
			sat: ['14:00-24:00'],
			sun: ['07:00-19:30'],
		},
	});
	await fireEvent.click(field('Only at certain hours'));
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(sent[1]).toEqual({ allowed_hours: null }));
});

test('groups of a user are chosen, and a deleted one can be left', async () => {
	show();
	await screen.findByText('Channel groups', { selector: 'legend' });
	expect([field('Kids').checked, field('News').checked]).toEqual([true, false]);
	await fireEvent.click(field('Group 9, which was deleted'));
	await fireEvent.click(field('News'));
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await waitFor(() => expect(sent).toEqual([{ channel_group_ids: [1, 2] }]));
});

test('a sleep timer is set and removed', async () => {
	show();
	await fireEvent.click(await screen.findByRole('button', { name: 'Start' }));
	await screen.findByText(/^All streams end at/);
	await fireEvent.click(screen.getByRole('button', { name: 'Remove the timer' }));
	await screen.findByRole('button', { name: 'Start' });
	expect(sent).toEqual([{ sleep_minutes: 60 }, { sleep_minutes: 0 }]);
});
