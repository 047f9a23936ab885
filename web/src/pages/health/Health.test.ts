import { render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { adviceParts } from './advice';
import Health from './Health.svelte';

const HEALTH = {
	status: 'ok',
	version: '0.2.0',
	counts: {
		problems: 0,
		accounts: 0,
		failing_accounts: 0,
		expiring_accounts: 0,
		channels: 0,
		live_channels: 0,
		viewers: 0,
	},
	problems: [],
	store: null,
	disk: null,
	lacking_confinement: [] as object[],
};

let lacking: object[];

beforeEach(() => {
	lacking = [];
	vi.stubGlobal('fetch', async (request: Request) => {
		const answers: Record<string, unknown> = {
			'/api/core/health/': { ...HEALTH, lacking_confinement: lacking },
			'/api/core/logs/': { lines: [] },
			'/api/core/nodes/': { is_enabled: false, nodes: [] },
		};
		return Response.json(answers[new URL(request.url).pathname] ?? {});
	});
});
afterEach(() => vi.unstubAllGlobals());

test('each part of the confinement that the machine lacks stands there with the line that adds it', async () => {
	lacking = [
		{
			part: 'control_group',
			message: 'The gateway has no delegated control group.',
			advice: 'Add the line `Delegate=cpu memory pids`, and restart the gateway.',
		},
		{ part: 'later', message: 'A part of a later version.', advice: 'Do something.' },
	];
	render(Health);
	await screen.findByRole('heading', { name: 'Confinement that this machine lacks' });
	expect(screen.getByText('Memory and processors (control groups)')).toBeTruthy();
	expect(screen.getByText('Delegate=cpu memory pids').tagName).toBe('CODE');
	expect(screen.getByText('A part of a later version.')).toBeTruthy();
});

test('a machine that lacks nothing has no such section', async () => {
	render(Health);
	await screen.findByText('0.2.0');
	expect(screen.queryByText('Confinement that this machine lacks')).toBeNull();
});

test.each([
	['Run it.', [{ text: 'Run it.', isCode: false }]],
	[
		'Add `a b` and run `c`',
		[
			{ text: 'Add ', isCode: false },
			{ text: 'a b', isCode: true },
			{ text: ' and run ', isCode: false },
			{ text: 'c', isCode: true },
		],
	],
	['', []],
])('“%s” has these parts', (advice, parts) => expect(adviceParts(advice)).toEqual(parts));
