import { render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import { inSections, isAdvanced } from './model';
import Settings from './Settings.svelte';

const group = (id: number, key: string, defaults: object) => ({
	id,
	key,
	name: `Name of ${key}`,
	description: `About ${key}.`,
	defaults,
	value: {},
});
const GROUPS = [
	group(1, 'proxy_settings', { connect_timeout: 3, at_limit: 'refuse' }),
	group(2, 'system_settings', { time_zone: 'UTC', log_level: 'info' }),
	group(3, 'of_a_later_version', { something: 1 }),
];

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	vi.stubGlobal('fetch', async (request: Request) => {
		const isSettings = new URL(request.url).pathname === '/api/core/settings/';
		const results = isSettings ? GROUPS : [];
		return Response.json({ count: results.length, next: null, previous: null, results });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

async function open(path: string): Promise<HTMLDetailsElement[]> {
	history.replaceState(null, '', path);
	router.read();
	const { container } = render(Settings);
	await screen.findAllByRole('heading', { level: 2 });
	return [...container.querySelectorAll('details')];
}

test('sections come in the order in which people need them, and the times of the engine are closed', async () => {
	const details = await open('/settings');
	const titles = screen.getAllByRole('heading', { level: 2 }).map((it) => it.textContent);
	expect(titles).toEqual(['General', 'Engine', 'Name of of_a_later_version']);
	expect(screen.getAllByRole('link').map((it) => it.getAttribute('href'))).toEqual([
		'#settings-2',
		'#settings-1',
		'#settings-3',
	]);
	expect(details.map((it) => it.open)).toEqual([false, false]);
	expect(details[1]?.querySelector('[name=connect_timeout]')).toBeTruthy();
	expect(details[1]?.querySelector('[name=at_limit]')).toBeNull();
});

test('a search opens what it finds', async () => {
	const details = await open('/settings?q=connect to a provider');
	expect(details.map((it) => it.open)).toEqual([true]);
	expect(screen.queryByRole('link')).toBeNull();
});

test('groups that this version does not know come last', () => {
	const keys = ['later', 'proxy_settings', 'network_access', 'system_settings'].map((key) => ({ key }));
	expect(inSections(keys).map((it) => it.key)).toEqual([
		'system_settings',
		'network_access',
		'proxy_settings',
		'later',
	]);
});

test.each([
	['proxy_settings', 'stall_timeout', true],
	['proxy_settings', 'of_a_later_version', true],
	['proxy_settings', 'channel_shutdown_delay', false],
	['system_settings', 'log_level', true],
	['dvr_settings', 'retention_days', false],
])('in %s, %s is advanced: %s', (key, name, expected) => expect(isAdvanced(key, name)).toBe(expected));
