import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, expect, test, vi } from 'vitest';
import ProgrammeRulePage from './ProgrammeRulePage.svelte';

afterEach(() => vi.unstubAllGlobals());

/** A gateway without programmes that has one group. Notes the rules that were sent to it. */
function gateway(): Record<string, unknown>[] {
	const sent: Record<string, unknown>[] = [];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const path = new URL(request.url).pathname;
		const bodies: Record<string, unknown> = {
			'/api/channels/groups/': { count: 1, next: null, previous: null, results: [{ id: 9, name: 'Sports' }] },
			'/api/channels/series-rules/preview/': {
				matches: [],
				total: 0,
				limit: 50,
				epg_found: true,
				warn: false,
			},
			'/api/channels/series-rules/': { success: true, rules: [], removed: 0 },
		};
		if (request.method === 'POST' && path === '/api/channels/series-rules/') {
			sent.push((await request.json()) as Record<string, unknown>);
		}
		const headers = { 'Content-Type': 'application/json' };
		return new Response(JSON.stringify(bodies[path] ?? {}), { status: 200, headers });
	});
	return sent;
}

test('a rule is saved with the conditions that were chosen', async () => {
	const sent = gateway();
	render(ProgrammeRulePage, { channel: '' });
	await fireEvent.input(screen.getByLabelText(/Title of the programme/), { target: { value: 'Show' } });
	const group = screen.getByRole('combobox', { name: /channels of these groups/, hidden: true });
	await fireEvent.input(group, { target: { value: 'spo' } });
	await fireEvent.click(await screen.findByRole('option', { name: /Sports/, hidden: true }));
	await screen.findByRole('button', { name: 'Remove Sports', hidden: true });
	await fireEvent.click(screen.getByLabelText('Sunday'));
	await fireEvent.input(screen.getByLabelText(/at this time or later/), { target: { value: '20:15' } });
	await fireEvent.input(screen.getByLabelText(/From this season on/), { target: { value: '3' } });
	await fireEvent.change(screen.getByLabelText(/Preferred quality/), { target: { selectedIndex: 1 } });
	await fireEvent.click(screen.getByLabelText(/what the library has/));
	await fireEvent.input(screen.getByLabelText(/Minutes before/i), { target: { value: '-2' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await vi.waitFor(() => expect(sent).toHaveLength(1));
	expect(sent[0]).toEqual({
		title: 'Show',
		title_mode: 'exact',
		mode: 'all',
		channel_group_ids: [9],
		days_of_week: [6],
		start_after: '20:15',
		season_from: 3,
		quality: 'hd',
		skip_library: true,
		keep: 0,
		quota_bytes: 0,
		padding_before: -120,
		priority: 50,
		enabled: true,
	});
});
