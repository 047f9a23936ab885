import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { navigate } from '$lib/router';
import Channels from './Channels.svelte';

interface Stored {
	id: number;
	name: string;
	channel_number: number | null;
	channel_group_id: number | null;
	channel_group_name: string | null;
	epg_data_id: number | null;
	effective_epg_data_id: number | null;
	logo_id: number | null;
	logo_url: string | null;
	enabled: boolean;
	streams: number[];
	auto_created: boolean;
}
const channel = (id: number, name: string, streams: number[], guide: number | null = null): Stored => ({
	id,
	name,
	channel_number: id * 10,
	channel_group_id: null,
	channel_group_name: null,
	epg_data_id: guide,
	effective_epg_data_id: guide,
	logo_id: null,
	logo_url: null,
	enabled: true,
	streams,
	auto_created: false,
});
const stream = (id: number, score: number | null, is_stale = false) => ({
	id,
	is_stale,
	health: score === null ? null : { score },
});
const page = (results: unknown[]) => ({ count: results.length, results, next: null, previous: null });
const GROUPS = [
	{ id: 3, name: 'Sport', position: null, channel_count: 1, m3u_account_count: 0, m3u_accounts: [] },
];

/** The filters of problems, each with the channels of this stage that match. */
const FILTERS: readonly [string, (it: Stored) => boolean][] = [
	['only_streamless', (it) => it.streams.length === 0],
	['only_stale', () => false],
	['only_failing', (it) => it.id === 3],
	['only_unplayed', (it) => it.id === 4],
	['epg', (it) => it.effective_epg_data_id === null],
];

let channels: Stored[];
let version: number;
let writes: { method: string; path: string; body: unknown; tag: string | null }[];
let conflict: boolean;

async function write(request: Request, pathname: string): Promise<Response> {
	const body: unknown = await request.json();
	writes.push({ method: request.method, path: pathname, body, tag: request.headers.get('If-Match') });
	if (pathname.endsWith('/edit/bulk/')) {
		for (const it of body as Partial<Stored>[])
			channels = channels.map((row) => (row.id === it.id ? { ...row, ...it } : row));
		return Response.json({ channels: [], updated_count: 1, message: '', undo: null });
	}
	const id = Number(pathname.split('/').at(-2));
	const row = channels.find((it) => it.id === id)!;
	const headers = { ETag: `"${version + 1}"` };
	if (conflict) {
		conflict = false;
		version += 1;
		channels = channels.map((it) => (it.id === id ? { ...it, name: 'Of somebody else' } : it));
		return Response.json(
			channels.find((it) => it.id === id),
			{ status: 412, headers },
		);
	}
	const changed = body as Partial<Stored>;
	if (channels.some((it) => it.id !== id && it.channel_number === changed.channel_number))
		return Response.json({ channel_number: ['This field must be unique.'] }, { status: 400 });
	const next = { ...row, ...changed };
	channels = channels.map((it) => (it.id === id ? next : it));
	return Response.json(next, { headers });
}

function read(pathname: string, query: URLSearchParams): Response {
	const one = /^\/api\/channels\/channels\/(\d+)\/$/.exec(pathname);
	if (one)
		return Response.json(
			channels.find((it) => it.id === Number(one[1])),
			{ headers: { ETag: `"${version}"` } },
		);
	const ordered = channels.toSorted((a, b) => (a.channel_number ?? 0) - (b.channel_number ?? 0));
	const [start, end] = [Number(query.get('start')), Number(query.get('end') ?? Infinity)];
	const answers: Record<string, () => unknown> = {
		'/api/channels/channels/': () =>
			page(ordered.filter((it) => FILTERS.every(([name, has]) => !query.has(name) || has(it)))),
		'/api/channels/channels/ids/': () => ordered.map((it) => it.id),
		'/api/channels/channels/numbers-in-range/': () => ({
			occupants: ordered.filter((it) => (it.channel_number ?? 0) >= start && (it.channel_number ?? 0) <= end),
		}),
		'/api/channels/groups/': () => page(GROUPS),
		'/api/epg/epgdata/': () => [
			{ id: 5, name: 'Guide of one', tvg_id: 'one', epg_source: 1, icon_url: null },
		],
	};
	return Response.json(answers[pathname]?.() ?? page([]));
}

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	channels = [
		channel(1, 'One', [1], 5),
		channel(2, 'Two', []),
		channel(3, 'Three', [2, 3]),
		channel(4, 'Four', [4]),
	];
	[version, writes, conflict] = [1, [], false];
	HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
		this.open = true;
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname, searchParams } = new URL(request.url);
		if (pathname === '/api/channels/streams/by-ids/')
			return Response.json([stream(1, 90), stream(2, 10), stream(3, 0), stream(4, null)]);
		return request.method === 'GET' ? read(pathname, searchParams) : write(request, pathname);
	});
	navigate('/channels?edit=1');
	render(Channels, {});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
	navigate('/');
});

const rowOf = async (name: string): Promise<HTMLElement> =>
	(await screen.findByText(name, { selector: 'td bdi' })).closest('tr')!;
const names = (): (string | null | undefined)[] =>
	[...document.querySelectorAll('td[data-key=name] bdi')].map((it) => it.textContent);

test('a row is edited by keys, and only what has changed is written, for the record that was read', async () => {
	const row = await rowOf('Two');
	row.focus();
	await fireEvent.keyDown(row, { key: 'F2' });
	const name = await within(row).findByLabelText<HTMLInputElement>('Name: Two');
	expect(document.activeElement).toBe(name);
	await fireEvent.input(name, { target: { value: 'Second' } });
	const group = within(row).getByLabelText('Group: Two');
	await fireEvent.input(group, { target: { value: 'spo' } });
	await fireEvent.click(await screen.findByRole('option', { name: 'Sport', hidden: true }));
	await fireEvent.keyDown(group, { key: 'Enter' });
	await rowOf('Second');
	expect(writes).toEqual([
		{
			method: 'PATCH',
			path: '/api/channels/channels/2/',
			body: { name: 'Second', channel_group_id: 3 },
			tag: '"1"',
		},
	]);
	expect(screen.queryByRole('combobox', { name: /Group:/ })).toBeNull();
});

test('an error is at its cell, Escape takes the cell back, and once more ends without a write', async () => {
	const row = await rowOf('Two');
	await fireEvent.click(row.querySelector('td[data-key=number]')!);
	const number = await within(row).findByLabelText<HTMLInputElement>('Number: Two');
	expect(document.activeElement).toBe(number);
	await fireEvent.input(number, { target: { value: '30' } });
	await fireEvent.keyDown(number, { key: 'Enter' });
	const error = await within(row).findByRole('alert', { hidden: true });
	expect(error.textContent).toBe('Three has the number 30.');
	expect(number.getAttribute('aria-describedby')).toBe(error.id);
	await fireEvent.keyDown(number, { key: 'Escape' });
	await waitFor(() => expect(number.value).toBe('20'));
	expect(within(row).queryByRole('alert', { hidden: true })).toBeNull();
	await fireEvent.keyDown(number, { key: 'Escape' });
	await waitFor(() => expect(within(row).queryByLabelText('Number: Two')).toBeNull());
	expect(writes.length).toBe(1);
});

test('what somebody else has saved meanwhile is shown before it is overwritten', async () => {
	const row = await rowOf('Two');
	await fireEvent.click(row.querySelector('td[data-key=name]')!);
	const name = await within(row).findByLabelText<HTMLInputElement>('Name: Two');
	await fireEvent.input(name, { target: { value: 'Mine' } });
	conflict = true;
	await fireEvent.keyDown(name, { key: 'Enter' });
	const error = await within(row).findByRole('alert', { hidden: true });
	expect(error.textContent).toContain('“Of somebody else”');
	await fireEvent.keyDown(name, { key: 'Enter' });
	await rowOf('Mine');
	expect(writes.map((it) => it.tag)).toEqual(['"1"', '"2"']);
});

test('problems are signs with words, each of which the gateway can filter by', async () => {
	const problems = async (name: string): Promise<string[]> => {
		const row = await rowOf(name);
		return [...row.querySelectorAll('td[data-key=problems] [title]')].map(
			(it) => it.getAttribute('title') ?? '',
		);
	};
	await waitFor(async () => expect(await problems('Four')).toEqual(['Never played', 'No guide']));
	expect(await problems('One')).toEqual([]);
	expect(await problems('Two')).toEqual(['No streams', 'No guide']);
	expect(await problems('Three')).toEqual(['Every stream fails', 'No guide']);
	await fireEvent.click(await screen.findByRole('button', { name: /No streams 1/ }));
	await waitFor(() => expect(names()).toEqual(['Two']));
	expect(location.search).toContain('only=streamless');
	for (const [name, found] of [
		[/Every stream fails 1/, ['Three']],
		[/Never played 1/, ['Four']],
		[/No guide 3/, ['Two', 'Three', 'Four']],
	] as const) {
		await fireEvent.click(await screen.findByRole('button', { name }));
		await waitFor(() => expect(names()).toEqual(found));
	}
});

test('a row moves by keys: one number at once, several ones after they were shown', async () => {
	const row = await rowOf('Four');
	row.focus();
	for (let n = 0; n < 2; n += 1)
		await fireEvent.keyDown(document.activeElement!, { key: 'ArrowUp', altKey: true });
	await fireEvent.keyDown(document.activeElement!, { key: 'Enter' });
	// The number behind that of the row above is free.
	await waitFor(() => expect(names()).toEqual(['One', 'Four', 'Two', 'Three']));
	expect(writes.map((it) => it.body)).toEqual([[{ id: 4, channel_number: 11 }]]);

	channels = channels.map((it) => ({ ...it, channel_number: it.id }));
	writes = [];
	const first = await rowOf('One');
	first.focus();
	await fireEvent.keyDown(first, { key: 'End', altKey: true });
	await fireEvent.keyDown(document.activeElement!, { key: 'Enter' });
	await screen.findByText('Behind Three');
	expect(writes).toEqual([]);
	const plan = screen
		.getAllByRole('listitem', { hidden: true })
		.map((it) => it.textContent?.replace(/\s+/g, ' ').trim());
	expect(plan.filter((it) => it?.includes('→'))).toEqual(['1 → 4 One', '4 → 5 Four']);
	await fireEvent.click(screen.getByRole('button', { name: 'Move', hidden: true }));
	await waitFor(() => expect(writes.length).toBe(1));
	expect(writes[0]?.body).toEqual([
		{ id: 1, channel_number: 4 },
		{ id: 4, channel_number: 5 },
	]);
});
