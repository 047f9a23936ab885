import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import type { Plugin } from './model';
import Plugins from './Plugins.svelte';

const KEY = '/api/plugins/plugins/demo/';

/** Bodies that were sent, by path. */
let sent: Record<string, unknown[]>;

/** A gateway with one plugin, and answers to what is sent, each with a status. */
function gateway(plugin: Plugin, answers: Record<string, [number, unknown]> = {}): void {
	sent = {};
	const others: Record<string, unknown> = {
		'/api/plugins/plugins/': { plugins: [plugin] },
		[`${KEY}runs/`]: { runs: [] },
		[`${KEY}logs/`]: { lines: ['first', 'second <i>'] },
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const path = new URL(request.url).pathname;
		const text = request.method === 'GET' ? '' : await request.text();
		if (text) (sent[path] ??= []).push(JSON.parse(text));
		const [status, body] = answers[path] ?? [others[path] === undefined ? 404 : 200, others[path] ?? {}];
		return new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
	});
}

const demo = (more: Partial<Plugin> = {}): Plugin =>
	({
		key: 'demo',
		name: 'Demo <b>',
		version: '1.2.0',
		description: 'Does <script>things</script>',
		author: '',
		help_url: '',
		enabled: false,
		ever_enabled: false,
		fields: [],
		settings: {},
		actions: [],
		missing: false,
		state: 'disabled',
		state_since: null,
		runs: 0,
		waiting_runs: 0,
		crashes: 0,
		resources: null,
		legacy: false,
		logo_url: null,
		deprecated: false,
		permissions: { declared: true, api: [], network: false, listen: [], programs: [], files: [] },
		granted_permissions: null,
		additional_permissions: [],
		requirements: [],
		limits: null,
		admin_limits: {},
		warnings: [],
		error: null,
		installed_at: null,
		...more,
	}) as Plugin;

function go(path: string): void {
	history.replaceState(null, '', path);
	router.read();
}

const button = (name: string) => screen.getByRole<HTMLButtonElement>('button', { name });

beforeEach(() => {
	session.user = { id: 1, username: 'anna', user_level: 10, is_superuser: true } as typeof session.user;
	go('/plugins/demo');
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

test('what the gateway reports is accepted, allowed or granted before a plugin is enabled', async () => {
	const plugin = demo({
		gaps: ['Ports are not limited.'],
		scan: {
			unsupported: [{ name: 'apps.proxy.live', file: 'plugin.py', line: 3 }],
			packages: ['lxml'],
			folders: ['/data/guides'],
			requirements: ['requests>=2'],
		},
		warnings: ['The action "go" asks for the unknown event x.'],
	});
	const enabled = demo({ enabled: true, state: 'ready' });
	gateway(plugin, { [`${KEY}enabled/`]: [200, { success: true, plugin: enabled }] });
	render(Plugins, { id: 'demo' });
	await screen.findByText('Before you enable it');
	for (const text of [
		'Ports are not limited.',
		'requests>=2',
		'apps.proxy.live (plugin.py:3)',
		'lxml',
		plugin.warnings[0],
	])
		expect(screen.getByText(text ?? '')).toBeTruthy();
	expect(
		screen.getByText('It asks for no permissions: it uses its own files and nothing else.'),
	).toBeTruthy();
	expect(button('Enable').disabled).toBe(true);
	await fireEvent.click(screen.getByLabelText('Enable it without these limits'));
	expect(button('Enable').disabled).toBe(true);
	await fireEvent.click(screen.getByLabelText('Fetch these packages from the network'));
	const folder = screen.getByLabelText<HTMLSelectElement>('/data/guides');
	folder.selectedIndex = 2;
	await fireEvent.change(folder);
	await fireEvent.click(button('Enable'));
	await waitFor(() =>
		expect(sent[`${KEY}enabled/`]).toEqual([
			{
				enabled: true,
				version: '1.2.0',
				folders: ['/data/guides:write'],
				accept_gaps: true,
				allowed_packages: ['requests>=2'],
			},
		]),
	);
	await screen.findByText('ready');
});

test('a gateway that reports nothing shows nothing to accept, and texts of a plugin are texts', async () => {
	gateway(demo({ permissions: { declared: false, api: ['full'], network: true } }));
	const { container } = render(Plugins, { id: 'demo' });
	await screen.findByText('Enable it only if you trust its author');
	expect(screen.getByText('Connects to any host, in your network and on the Internet.')).toBeTruthy();
	expect(screen.getByText('Demo <b>')).toBeTruthy();
	expect(screen.getByText('Does <script>things</script>')).toBeTruthy();
	expect(container.querySelector('main script, h1 b')).toBeNull();
	expect(screen.queryByRole('checkbox')).toBeNull();
	expect(button('Enable').disabled).toBe(false);
});

test('an update that waits names its new permissions', async () => {
	gateway(
		demo({
			granted_permissions: { declared: true, api: [], network: false },
			permissions: { declared: true, api: ['streams:write'], network: false },
			additional_permissions: ['API: streams:write'],
		}),
	);
	render(Plugins, { id: 'demo' });
	const notice = (await screen.findByText('This version wants more permissions')).closest('[role=alert]');
	expect(notice?.textContent).toContain('Reads and changes streams.');
});

test('each type of a field has its control, a refusal is at its field, and a password stays unless it is changed', async () => {
	go('/plugins/demo?tab=settings');
	const plugin = demo({
		fields: [
			{ id: 'on', label: 'On', type: 'boolean' },
			{ id: 'n', label: 'Count', type: 'number' },
			{ id: 'word', label: 'Word', type: 'string' },
			{ id: 'note', label: 'Note', type: 'text' },
			{ id: 'mode', label: 'Mode', type: 'select', options: [{ value: 1, label: 'Short' }] },
			{ id: 'key', label: 'Key', type: 'string', input_type: 'password' },
			{ label: 'About', type: 'info', description: 'Nothing <u>to</u> set.' },
			{ id: 'colours', label: 'Colours', type: 'colours' },
		],
		settings: { key: '********', old: 1, colours: ['red'] },
	});
	gateway(plugin, { [`${KEY}settings/`]: [400, { word: ['At most 16384 bytes are allowed.'] }] });
	const { container } = render(Plugins, { id: 'demo' });
	const word = await screen.findByLabelText('Word');
	const types = [...container.querySelectorAll('form :is(input, textarea, select)')].map((it) =>
		it instanceof HTMLInputElement ? it.type : it.tagName.toLowerCase(),
	);
	expect(types).toEqual(['checkbox', 'number', 'text', 'textarea', 'select', 'password']);
	expect(screen.getByText('Nothing <u>to</u> set.')).toBeTruthy();
	expect(screen.getByText('["red"]')).toBeTruthy();
	expect(screen.getByLabelText<HTMLInputElement>('Key').value).toBe('');

	await fireEvent.input(word, { target: { value: 'long' } });
	const mode = screen.getByLabelText<HTMLSelectElement>('Mode');
	mode.selectedIndex = 1;
	await fireEvent.change(mode);
	await fireEvent.click(button('Save'));
	await screen.findByText('At most 16384 bytes are allowed.');
	expect(word.getAttribute('aria-invalid')).toBe('true');
	const all = { key: '********', old: 1, colours: ['red'], word: 'long', mode: 1 };
	expect(sent[`${KEY}settings/`]).toEqual([{ settings: all }]);

	const key = screen.getByLabelText('Key');
	await fireEvent.input(key, { target: { value: 'new' } });
	await fireEvent.input(key, { target: { value: '' } });
	await fireEvent.click(button('Save'));
	await waitFor(() => expect(sent[`${KEY}settings/`]?.[1]).toEqual({ settings: all }));
	await waitFor(() => expect(button('Save').getAttribute('aria-busy')).toBe('false'));
	await fireEvent.click(button('Remove the saved value: Key'));
	await fireEvent.click(button('Save'));
	await waitFor(() => expect(sent[`${KEY}settings/`]?.[2]).toEqual({ settings: { ...all, key: '' } }));
});

test('actions show their schedules as the gateway has stored them', async () => {
	go('/plugins/demo?tab=actions');
	const next_run = '2026-01-02T04:00:00Z';
	const schedules = [{ id: '7', source: 'manifest', action: 'go', cron: '0 4 * * *', next_run }];
	gateway(demo({ actions: [{ id: 'go', label: 'Go <b>', schedule: '0 4 * * *' }], schedules }));
	render(Plugins, { id: 'demo' });
	const table = await screen.findByRole('table', { name: 'Schedules' });
	expect(table.textContent).toContain('Go <b>');
	expect(table.textContent).toContain('0 4 * * *');
	expect(button('Run: Go <b>').disabled).toBe(true);
});

test('a long log is read in steps', async () => {
	go('/plugins/demo?tab=log');
	gateway(demo());
	const asked: (string | null)[] = [];
	const answer = globalThis.fetch;
	vi.stubGlobal('fetch', async (request: Request) => {
		const url = new URL(request.url);
		if (!url.pathname.endsWith('/logs/')) return answer(request);
		const lines = Number(url.searchParams.get('lines'));
		asked.push(url.searchParams.get('lines'));
		return Response.json({ lines: Array.from({ length: Math.min(lines, 700) }, (_, n) => `line ${n} <i>`) });
	});
	render(Plugins, { id: 'demo' });
	await screen.findByText('The last 200 lines');
	await fireEvent.click(button('Show older lines'));
	await screen.findByText('The last 700 lines');
	expect(screen.queryByRole('button', { name: 'Show older lines' })).toBeNull();
	expect(asked).toEqual(['200', '1000']);
});

test('what waits for a plugin, and what failed, is listed if the gateway stores it', async () => {
	go('/plugins/demo?tab=queue');
	gateway(demo({ waiting_deliveries: 1, dead_deliveries: 2 }));
	const asked: string[] = [];
	const answer = globalThis.fetch;
	vi.stubGlobal('fetch', async (request: Request) => {
		const url = new URL(request.url);
		if (url.pathname !== '/api/connect/deliveries/') return answer(request);
		asked.push(url.searchParams.get('plugin') ?? '');
		const it = { id: 3, integration: null, integration_name: null, plugin: 'demo', event: 'schedule' };
		const more = { summary: 'Clean <b>', state: 'dead', attempts: 2, created_at: '2026-01-02T04:00:00Z' };
		return Response.json({ count: 1, results: [{ ...it, ...more, due_at: null, dead_at: null }] });
	});
	render(Plugins, { id: 'demo' });
	await screen.findByText('Clean <b>');
	expect(screen.getByRole('tab', { name: 'Queue 3' })).toBeTruthy();
	expect(button('Send again: Clean <b>')).toBeTruthy();
	expect(asked).toEqual(['demo']);
});

test('past runs of a plugin are listed with their results', async () => {
	go('/plugins/demo?tab=past');
	gateway(demo());
	const asked: string[] = [];
	const answer = globalThis.fetch;
	vi.stubGlobal('fetch', async (request: Request) => {
		const url = new URL(request.url);
		if (url.pathname !== '/api/connect/logs/') return answer(request);
		asked.push(url.searchParams.get('plugin') ?? '');
		const it = { id: 3, integration: null, plugin: 'demo', action: 'go', cause: 'button', event: 'button' };
		const more = { status: 'failed', attempt: 1, duration_ms: 5, error_message: 'bang <u>' };
		const nothing = { request_payload: {}, response_payload: null, output: null, result: null };
		return Response.json({
			count: 1,
			results: [{ ...it, ...more, ...nothing, timestamp: '2026-01-02T04:00:00Z' }],
		});
	});
	render(Plugins, { id: 'demo' });
	await screen.findByText('bang <u>');
	expect(screen.getByRole('table', { name: 'Log' }).textContent).toContain('go');
	expect(screen.getByLabelText('Cause')).toBeTruthy();
	expect(screen.queryByLabelText('Integration')).toBeNull();
	expect(asked).toEqual(['demo']);
});

test('an admin sets limits, and an empty field is the limit of the plugin', async () => {
	const limits = { memory_mib: 512, cpu_percent: 50, processes: 32, open_files: 256, data_mib: 1024 };
	const plugin = demo({ enabled: true, state: 'ready', limits, admin_limits: { memory_mib: 512 } });
	const changed = demo({
		enabled: true,
		state: 'starting',
		limits: { ...limits, memory_mib: 128, processes: 64 },
		admin_limits: { processes: 64 },
	});
	gateway(plugin, {
		[`${KEY}limits/`]: [200, { success: true, admin_limits: { processes: 64 }, plugin: changed }],
	});
	render(Plugins, { id: 'demo' });
	const memory = await screen.findByLabelText<HTMLInputElement>('Memory (MiB)');
	expect(memory.value).toBe('512');
	const processes = screen.getByLabelText<HTMLInputElement>('Processes and threads');
	expect(processes.value).toBe('');
	expect(screen.getByText('Empty: 32, as the plugin asks for.')).toBeTruthy();
	await fireEvent.input(memory, { target: { value: '' } });
	await fireEvent.input(processes, { target: { value: '64' } });
	await fireEvent.click(button('Save the limits'));
	await waitFor(() => expect(sent[`${KEY}limits/`]).toEqual([{ memory_mib: null, processes: 64 }]));
	await screen.findByText('starting');
	expect(screen.getByText('Empty: 128, as the plugin asks for.')).toBeTruthy();
	expect(processes.value).toBe('64');
});

test('a refused limit is named at its field', async () => {
	const limits = { memory_mib: 512, cpu_percent: 50, processes: 32, open_files: 256, data_mib: 1024 };
	gateway(demo({ limits }), { [`${KEY}limits/`]: [400, { data_mib: ['Enter a number of at least 1.'] }] });
	render(Plugins, { id: 'demo' });
	const data = await screen.findByLabelText('Own files (MiB)');
	await fireEvent.input(data, { target: { value: '0' } });
	await fireEvent.click(button('Save the limits'));
	await screen.findByText('Enter a number of at least 1.');
	expect(data.getAttribute('aria-invalid')).toBe('true');
});

test('an unknown plugin is named as such', async () => {
	go('/plugins/other');
	gateway(demo());
	render(Plugins, { id: 'other' });
	await screen.findByText('There is no such plugin.');
});
