import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import Integrations from './Integrations.svelte';

const PLUGINS = [
	{
		key: 'cleaner',
		name: 'Cleaner <b>',
		enabled: true,
		actions: [{ id: 'go', label: 'Go' }, { id: 'stay' }],
	},
	{ key: 'greeter', name: 'greeter', enabled: false, actions: [{ id: 'greet', label: 'Greet' }] },
];
const ENTRY = {
	id: 7,
	integration: null,
	integration_name: null,
	plugin: 'cleaner',
	action: 'go',
	cause: 'schedule',
	type: 'plugin',
	event: 'schedule',
	is_test: false,
	status: 'success',
	attempt: 1,
	duration_ms: 34,
	timestamp: '2026-01-02T04:00:00Z',
	request_payload: {},
	response_payload: null,
	output: null,
	result: { status: 'ok', cleaned: 3 },
	error_message: null,
};

const PAUSED = {
	id: 1,
	name: 'Evening',
	type: 'plugin',
	enabled: true,
	state: 'paused',
	paused_reason: 'the plugin "greeter" is disabled',
	preset: null,
	headers: {},
	options: {},
	plugin: 'greeter',
	action: 'old',
	events: [],
	subscriptions: [],
	parallel: 1,
	max_age: null,
	waiting: 2,
	dead: 0,
};

/** Addresses that were read, and bodies that were sent, by path. */
let asked: Record<string, URLSearchParams[]>;
let sent: Record<string, unknown[]>;

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	asked = {};
	sent = {};
	const page = (results: unknown[]) => ({ count: results.length, results, next: null, previous: null });
	const answers: Record<string, unknown> = {
		'/api/connect/presets/': page([]),
		'/api/connect/events/': page([]),
		'/api/connect/integrations/1/': PAUSED,
		'/api/connect/integrations/': page([{ id: 1, name: 'Chat' }]),
		'/api/plugins/plugins/': { plugins: PLUGINS },
		'/api/connect/logs/': page([ENTRY]),
		'/api/connect/deliveries/': page([]),
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname, searchParams } = new URL(request.url);
		if (request.method !== 'GET') {
			(sent[pathname] ??= []).push(JSON.parse(await request.text()));
			return Response.json({ name: ['Enter a name.'] }, { status: 400 });
		}
		(asked[pathname] ??= []).push(searchParams);
		return Response.json(answers[pathname] ?? {}, { status: pathname in answers ? 200 : 404 });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

function go(path: string): void {
	history.replaceState(null, '', path);
	router.read();
}

/** Chooses an option of a select by its text. */
async function choose(label: string, option: string): Promise<void> {
	const select = await screen.findByLabelText<HTMLSelectElement>(label);
	const index = [...select.options].findIndex((it) => it.text === option);
	expect(index, `${option} in ${label}`).toBeGreaterThanOrEqual(0);
	select.selectedIndex = index;
	await fireEvent.change(select);
}

const labels = (label: string): string[] =>
	[...screen.getByLabelText<HTMLSelectElement>(label).options].map((it) => it.text);

test('an action of a plugin is chosen from those that the plugins have', async () => {
	go('/integrations/new');
	render(Integrations, { id: 'new' });
	await choose('Type', 'Plugin: runs an action of a plugin');
	await screen.findByLabelText('Plugin*');
	expect(labels('Plugin*')).toEqual(['(choose a plugin)', 'Cleaner <b> (cleaner)', 'greeter']);
	expect(screen.getByLabelText<HTMLSelectElement>('Action*').disabled).toBe(true);

	// The only action of a plugin is chosen with it.
	await choose('Plugin*', 'greeter');
	expect(screen.getByText('The plugin is disabled. Enable it to run its actions.')).toBeTruthy();
	expect(screen.getByLabelText<HTMLSelectElement>('Action*').selectedOptions[0]?.text).toBe('Greet');
	await choose('Plugin*', 'Cleaner <b> (cleaner)');
	expect(screen.queryByText('The plugin is disabled. Enable it to run its actions.')).toBeNull();
	expect(labels('Action*')).toEqual(['(choose an action)', 'Go', 'stay']);
	await choose('Action*', 'Go');
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await screen.findByText('Enter a name.');
	expect(sent['/api/connect/integrations/']).toEqual([
		{
			name: '',
			type: 'plugin',
			enabled: true,
			plugin: 'cleaner',
			action: 'go',
			parallel: 1,
			max_age: null,
			digest_minutes: null,
			trusted: false,
		},
	]);
});

test('a trusted target is warned about, and events can be gathered', async () => {
	go('/integrations/new');
	render(Integrations, { id: 'new' });
	const trusted = await screen.findByLabelText('The target gets whole addresses of streams');
	expect(screen.queryByRole('note')).toBeNull();
	await fireEvent.click(trusted);
	expect(screen.getByRole('note').textContent).toContain('logins at your providers');
	const minutes = screen.getByLabelText('Minutes between two messages');
	await fireEvent.input(minutes, { target: { value: '15' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await screen.findByText('Enter a name.');
	expect(sent['/api/connect/integrations/']?.at(-1)).toMatchObject({ trusted: true, digest_minutes: 15 });
});

test('an integration that a disabled plugin pauses leads to it, and keeps an action that is gone', async () => {
	go('/integrations/1');
	render(Integrations, { id: '1' });
	const link = await screen.findByRole('link', { name: 'Go to the plugin' });
	expect(link.getAttribute('href')).toBe('/plugins/greeter');
	expect(screen.getByText('runs old of greeter')).toBeTruthy();
	await screen.findByLabelText('Plugin*');
	expect(labels('Action*')).toEqual(['(choose an action)', 'Greet', 'old']);
	expect(screen.getByLabelText<HTMLSelectElement>('Action*').selectedOptions[0]?.text).toBe('old');
	// Nothing has been changed.
	expect(screen.queryByRole('button', { name: 'Cancel' })).toBeNull();
});

test('the log names the action, the cause and the result of a plugin', async () => {
	go('/integrations?show=log&plugin=cleaner&cause=schedule');
	render(Integrations, {});
	const table = await screen.findByRole('table', { name: 'Log' });
	for (const name of ['cleaner', 'go', 'Schedule']) expect(table.textContent).toContain(name);
	await fireEvent.click(screen.getByRole('button', { name: 'Details: Schedule' }));
	await screen.findByText('Plugin cleaner, action go');
	expect(screen.getByText(/"cleaned": 3/)).toBeTruthy();
	const query = asked['/api/connect/logs/']?.[0];
	expect([query?.get('plugin'), query?.get('cause')]).toEqual(['cleaner', 'schedule']);
});

test('an integration or a plugin is chosen, and no filter stays for another part', async () => {
	go('/integrations?show=log&of=channel_start&status=failed&integration=1');
	render(Integrations, {});
	await screen.findByRole('table', { name: 'Log' });
	await screen.findByLabelText('Plugin');
	await choose('Plugin', 'Cleaner <b> (cleaner)');
	await waitFor(() => expect(asked['/api/connect/logs/']?.at(-1)?.get('plugin')).toBe('cleaner'));
	expect(asked['/api/connect/logs/']?.at(-1)?.get('integration')).toBeNull();
	await choose('Cause', 'Button');
	await fireEvent.click(screen.getByRole('tab', { name: 'Queue' }));
	await screen.findByText('Nothing waits');
	expect(location.search).toBe('?show=queue');
});
