import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '$lib/api';
import { session } from '$lib/auth';
import Backups from './Backups.svelte';
import { follow, type Status } from './task';

const NAME = 'headwater-backup-2026.05.04.tar.gz';
const backup = (name: string, restores_with: string | null = 'passphrase') => ({
	name,
	size: 49_786,
	created: '2026-05-04T03:00:00Z',
	restores_with,
	version: '0.2.0',
});
const SCHEDULE = {
	enabled: true,
	frequency: 'daily',
	time: '03:00',
	day_of_week: 0,
	retention_count: 3,
	cron_expression: '',
};
const status = (state: Status['state'], more: Partial<Status> = {}): Status => ({
	state,
	result: null,
	error: null,
	...more,
});
let list: ReturnType<typeof backup>[] = [];
let states: Status[] = [];
let sent: [path: string, body: string][] = [];

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	[list, states, sent] = [[], [], []];
	HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
		this.open = true;
	};
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname } = new URL(request.url);
		if (request.method !== 'GET') sent.push([pathname, await request.clone().text()]);
		if (pathname.includes('/status/')) return Response.json(states.length > 1 ? states.shift() : states[0]);
		if (pathname === '/api/backups/schedule/') return Response.json(SCHEDULE);
		if (pathname === '/api/backups/') return Response.json(list);
		return Response.json({ detail: 'started', task_id: 't', task_token: 'k' }, { status: 202 });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

const press = async (name: string | RegExp) => {
	const buttons = await screen.findAllByRole('button', { name, hidden: true });
	await fireEvent.click(buttons.at(-1)!);
};

test('a back-up is made with a passphrase, and shows in the list', async () => {
	render(Backups);
	await screen.findByText('No back-up yet');
	await press('Make a back-up');
	await fireEvent.input(await screen.findByLabelText(/^Passphrase/), { target: { value: 'correct horse' } });
	const result = { status: 'completed', filename: NAME, size: 1, message: null };
	states = [status('running'), status('completed', { result })];
	list = [backup(NAME)];
	await press('Make a back-up');
	await screen.findByText(new RegExp(`The back-up is ready. ${NAME}`));
	await screen.findByRole('button', { name: `Restore ${NAME}` });
	expect(sent).toEqual([['/api/backups/create/', '{"passphrase":"correct horse"}']]);
});

test('a restoration asks for the secret of the back-up, and its failure shows', async () => {
	list = [backup(NAME), backup('other.tar.gz', null)];
	render(Backups);
	await press(`Restore ${NAME}`);
	await screen.findByText(/What was changed since then is lost/);
	await fireEvent.input(await screen.findByLabelText(/^Passphrase/), { target: { value: 'wrong' } });
	states = [status('failed', { error: 'the passphrase is wrong' })];
	await press('Restore');
	await screen.findByText('The back-up was not restored. Nothing has changed: the passphrase is wrong');
	expect(sent).toEqual([[`/api/backups/${NAME}/restore/`, '{"passphrase":"wrong"}']]);
	const other = screen.getByRole('button', { name: 'Restore other.tar.gz' });
	expect((other as HTMLButtonElement).disabled, 'not a back-up').toBe(true);
});

const refusal = (code: number) => (): Promise<Status> => Promise.reject(new ApiError(code, 'refused'));
test.each([
	['a task that ends', [status('pending'), status('running'), status('completed')], 'completed', 3],
	['a restart of the gateway', [refusal(0), refusal(503), status('completed')], 'completed', 1],
	['a task that is no longer known', [status('running'), refusal(404)], undefined, 1],
	['a gateway that stays away', [refusal(0)], undefined, 0],
] as const)('%s is followed', async (_, answers, last, reports) => {
	const left = [...answers] as (Status | (() => Promise<Status>))[];
	const seen: Status[] = [];
	const read = async (): Promise<Status> => {
		const next = left.length > 1 ? left.shift() : left[0];
		return typeof next === 'function' ? next() : next!;
	};
	const end = await follow(
		read,
		(it) => seen.push(it),
		() => Promise.resolve(),
	);
	expect([end?.state, seen.length]).toEqual([last, reports]);
});
