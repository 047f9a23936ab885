import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import NumberDialog from './NumberDialog.svelte';

const occupant = (id: number, name: string, channel_number: number, auto_created = false) => ({
	id,
	name,
	channel_number,
	channel_group: null,
	channel_group_id: null,
	auto_created,
	auto_created_by_account_id: null,
	has_channel_number_override: false,
});
let sent: [method: string, path: string, body: unknown][] = [];
const ondone = vi.fn();

beforeEach(async () => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	sent = [];
	ondone.mockClear();
	HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
		this.open = true;
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname } = new URL(request.url);
		if (request.method !== 'GET') sent.push([request.method, pathname, await request.clone().json()]);
		const answers: Record<string, unknown> = {
			'/api/channels/channels/numbers-in-range/': {
				occupants: [occupant(1, 'One <b>', 1, true), occupant(2, 'Two', 2), occupant(5, 'Five', 50)],
			},
			'/api/channels/channels/': { count: 1, results: [{ id: 6, name: 'Six' }], next: null, previous: null },
		};
		return Response.json(answers[pathname] ?? { message: 'done', channel_numbers: [], undo: null });
	});
	const selected = { rows: { ids: [5, 6] }, count: 2 };
	render(NumberDialog, { selected, progress: () => undefined, onclose: () => undefined, ondone });
	await screen.findByText(/2 of these numbers are taken by other channels: 1 \(One <b>\), 2 \(Two\)/);
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const press = () => fireEvent.click(screen.getByRole('button', { name: 'Number', hidden: true }));
const plan = () =>
	screen.getAllByRole('listitem', { hidden: true }).map((it) => it.textContent?.replace(/\s+/g, ' ').trim());
async function choose(index: number): Promise<void> {
	const select = screen.getByLabelText<HTMLSelectElement>(/Where a number is taken/);
	select.selectedIndex = index;
	await fireEvent.change(select);
}

test('taken numbers are skipped, unless something else is chosen', async () => {
	expect(plan()).toEqual(['50 → 3 Five', 'none → 4 Six']);
	await press();
	await vi.waitFor(() => expect(ondone).toHaveBeenCalled());
	expect(sent).toEqual([['POST', '/api/channels/channels/assign/', { ids: [5, 6], starting_number: 1 }]]);
});

test('other channels move up, which is shown before it is done at once', async () => {
	await choose(1);
	expect(plan()).toEqual(['50 → 1 Five', 'none → 2 Six', '1 → 3 One <b>', '2 → 4 Two']);
	expect(screen.getByText('2 other channels get another number')).toBeTruthy();
	expect(screen.getByText(/1 of them gets its number from a source/)).toBeTruthy();
	await press();
	await vi.waitFor(() => expect(ondone).toHaveBeenCalled());
	const body = [
		{ id: 5, channel_number: 1 },
		{ id: 6, channel_number: 2 },
		{ id: 1, channel_number: 3 },
		{ id: 2, channel_number: 4 },
	];
	expect(sent).toEqual([['PATCH', '/api/channels/channels/edit/bulk/', body]]);
});

test('other channels get the numbers that become free', async () => {
	await choose(2);
	expect(plan()).toEqual(['50 → 1 Five', 'none → 2 Six', '1 → 50 One <b>', '2 → 3 Two']);
});

test('free numbers are said to be free', async () => {
	await fireEvent.input(screen.getByLabelText(/First number/), { target: { value: '100' } });
	await screen.findByText('All of these numbers are free.');
	expect(screen.queryByLabelText(/Where a number is taken/)).toBeNull();
	expect(plan()).toEqual(['50 → 100 Five', 'none → 101 Six']);
});
