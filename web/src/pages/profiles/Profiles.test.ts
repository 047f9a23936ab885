import { fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import {
	NEW_OUTPUT,
	NEW_STREAM,
	outputBody,
	outputValues,
	pidsOf,
	streamBody,
	type OutputProfile,
} from './model';
import Profiles from './Profiles.svelte';

const page = (results: unknown[]) => ({ count: results.length, next: null, previous: null, results });
const PROXY = {
	id: 1,
	name: 'Proxy',
	locked: true,
	delivery: 'proxy',
	command: '',
	parameters: '',
	is_active: true,
	user_agent: null,
	redirect_without_login: false,
};
const FFMPEG = {
	...PROXY,
	id: 4,
	name: 'ffmpeg <b>',
	locked: false,
	delivery: 'command',
	command: 'ffmpeg',
	parameters: '-i {streamUrl}',
};
const AGENT = { id: 9, name: 'VLC', user_agent: 'VLC/3.0.21', description: '', is_active: false };
const RESULT = {
	success: true,
	outcome: 'played',
	message: 'It plays.',
	cause: null,
	delivery: 'command',
	place: 'provider.example:80',
	account_name: 'Home',
	m3u_profile_id: 1,
	seconds_to_first_packet: 0.4,
	seconds_read: 5,
	bytes: 1,
	bitrate_kbps: 4800,
	programme_seconds: 5,
	speed: 1,
	video_codec: 'H.264',
	resolution: '1920x1080',
	audio_codecs: ['AAC'],
	programme_count: 1,
	program_lines: ['<i>line</i>'],
};
let sent: [method: string, path: string, body: string][] = [];

beforeEach(() => {
	session.user = { id: 1, username: 'root', user_level: 10, is_superuser: true } as typeof session.user;
	sent = [];
	vi.stubGlobal('fetch', async (request: Request) => {
		const { pathname } = new URL(request.url);
		if (request.method !== 'GET') sent.push([request.method, pathname, await request.clone().text()]);
		if (request.method === 'PATCH') return Response.json({ ...FFMPEG, ...JSON.parse(await request.text()) });
		const answers: Record<string, unknown> = {
			'/api/core/streamprofiles/': page([PROXY, FFMPEG]),
			'/api/core/outputprofiles/': page([]),
			'/api/core/useragents/': page([AGENT]),
			'/api/core/streamprofiles/4/test/': RESULT,
		};
		return Response.json(answers[pathname] ?? {}, { status: pathname in answers ? 200 : 404 });
	});
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
});

function open(path: string): void {
	history.replaceState(null, '', path);
	router.read();
	render(Profiles);
}

test('a stream profile is changed and tested against an address', async () => {
	open('/settings/profiles?open=4');
	const field = await screen.findByLabelText(/^Arguments/);
	await fireEvent.input(field, { target: { value: '-i {streamUrl} -c copy' } });
	await fireEvent.click(screen.getByRole('button', { name: 'Save' }));
	await vi.waitFor(() => expect(sent).toHaveLength(1));
	const body = JSON.parse(sent[0]![2]);
	expect(body).toEqual({ parameters: '-i {streamUrl} -c copy', redirect_without_login: false });
	const run = () => fireEvent.click(screen.getByRole('button', { name: 'Run the test' }));
	await run();
	await screen.findByText('Choose a stream, or write an address.');
	await fireEvent.input(screen.getByLabelText(/^Or an address/), {
		target: { value: 'http://a.example/1.ts' },
	});
	await run();
	await screen.findByText('It plays.');
	for (const text of ['provider.example:80, Home', '0.4 s', 'H.264, 1920x1080', 'AAC', '<i>line</i>'])
		expect(screen.getByText(text)).toBeTruthy();
	expect(sent.at(-1)).toEqual([
		'POST',
		'/api/core/streamprofiles/4/test/',
		'{"url":"http://a.example/1.ts","seconds":5}',
	]);
});

test('a built-in profile has no fields', async () => {
	open('/settings/profiles?open=1');
	await screen.findByText('A built-in profile cannot be changed or deleted.');
	expect(screen.queryByRole('button', { name: 'Save' })).toBeNull();
	expect(screen.queryByRole('button', { name: 'Delete' })).toBeNull();
});

test('each kind has its list, and an empty one says so', async () => {
	open('/settings/profiles?tab=agents');
	await screen.findByText('VLC/3.0.21');
	expect(screen.getByText('inactive')).toBeTruthy();
	await fireEvent.click(screen.getByRole('tab', { name: 'Output profiles' }));
	await screen.findByText('No output profile');
	expect(screen.getByRole('button', { name: 'Add output profile' })).toBeTruthy();
});

test('only a program has a command, and only a redirect can be for everybody', () => {
	const values = { ...NEW_STREAM, name: 'a', delivery: 'redirect' as const, redirect_without_login: true };
	expect(streamBody(values, values)).toMatchObject({
		command: '',
		parameters: '',
		user_agent: null,
		redirect_without_login: true,
	});
	expect(streamBody({ ...values, delivery: 'proxy' }, { name: 'b' })).toMatchObject({
		name: 'b',
		redirect_without_login: false,
	});
});

const output = (more: Partial<OutputProfile>) =>
	outputValues({
		id: 1,
		locked: false,
		name: 'a',
		container: 'mpegts',
		left_out_pids: [],
		left_out_kinds: [],
		stream_profile: null,
		command: '',
		parameters: '',
		user_agent_pattern: '',
		position: 0,
		is_active: true,
		...more,
	});

test('an output profile converts with one program or with none', () => {
	expect(output({}).program).toBe('none');
	expect(output({ command: 'x' }).program).toBe('own');
	expect(output({ stream_profile: 4 }).program).toBe(4);
	const body = (program: typeof NEW_OUTPUT.program) => {
		const { stream_profile, command } = outputBody({ ...NEW_OUTPUT, program });
		return [stream_profile, command];
	};
	expect([body('none'), body('own'), body(4)]).toEqual([
		[null, ''],
		[null, 'ffmpeg'],
		[4, ''],
	]);
});

test.each([
	['', []],
	['4130', [4130]],
	['4130, 0x1011 7', [4130, 4113, 7]],
	['41a', null],
	['-1', null],
])('the packet identifiers in “%s”', (text, pids) => expect(pidsOf(text)).toEqual(pids));
