import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { session } from '$lib/auth';
import { router } from '$lib/router';
import Library from './Library.svelte';

/** Answers by path; a function gets the query. */
type Answers = Record<string, unknown>;

interface Asked {
	method: string;
	path: string;
	query: URLSearchParams;
	body: unknown;
}

let asked: Asked[];

/** A gateway with these answers. Anything else is unknown to it. */
function gateway(answers: Answers): void {
	asked = [];
	vi.stubGlobal('fetch', async (input: Request | string, init?: RequestInit) => {
		const request = input instanceof Request ? input : new Request(new URL(input, location.href), init);
		const url = new URL(request.url);
		const text = request.method === 'GET' ? '' : await request.text();
		const body: unknown = text ? JSON.parse(text) : null;
		asked.push({ method: request.method, path: url.pathname, query: url.searchParams, body });
		const answer = answers[`${request.method} ${url.pathname}`] ?? answers[url.pathname];
		const found = typeof answer === 'function' ? answer(url.searchParams, body) : answer;
		if (found instanceof Response) return found;
		const status = found === undefined ? 404 : 200;
		return new Response(JSON.stringify(found ?? { detail: 'Not found.' }), {
			status,
			headers: { 'Content-Type': 'application/json' },
		});
	});
}

const user = (level: number) =>
	({ id: 1, username: 'anna', user_level: level, is_superuser: false }) as typeof session.user;
const title = (id: number, name: string, more: object = {}) => ({
	content_type: 'movie',
	id,
	uuid: `u${id}`,
	name,
	description: null,
	year: 1990 + id,
	rating: null,
	genre: null,
	duration_secs: null,
	episode_count: null,
	logo: null,
	tmdb_id: null,
	imdb_id: null,
	is_adult: false,
	hidden: false,
	is_stale: false,
	categories: [],
	provider_count: 1,
	custom_properties: {},
	...more,
});
const page = (results: unknown[], count = results.length) => ({ count, next: null, previous: null, results });
const version = (id: number, name: string, more: object = {}) => ({
	id,
	m3u_account: { id: 1, name: 'Provider', account_type: 'XC' },
	category: { id: 4, name: 'Drama' },
	stream_id: String(id),
	external_series_id: null,
	container_extension: 'mp4',
	label: null,
	name,
	match_reason: 'same TMDB id 949',
	is_stale: false,
	is_playable: true,
	last_seen: null,
	last_advanced_refresh: null,
	last_episode_refresh: null,
	url: null,
	custom_properties: {},
	...more,
});

function go(path: string): void {
	history.replaceState(null, '', path);
	router.read();
}

beforeEach(() => {
	session.user = user(1);
	go('/library');
});
afterEach(() => {
	vi.unstubAllGlobals();
	session.user = null;
	// Frames and scrolling of a browser are not what these tests are about.
	document.body.replaceChildren();
});

test('titles are links with their year, and the arrow keys move between them', async () => {
	gateway({
		'/api/vod/all/': page([
			title(1, 'Heat'),
			title(2, 'Ronin'),
			title(3, 'Andor', { content_type: 'series' }),
		]),
	});
	render(Library, {});
	const heat = await screen.findByRole('link', { name: /Heat/ });
	expect(heat.getAttribute('href')).toBe('/library/movie-1');
	expect(heat.textContent).toContain('1991');
	expect(screen.getByRole('link', { name: /Andor/ }).getAttribute('href')).toBe('/library/series-3');
	expect(screen.getByText('3 titles')).toBeTruthy();

	// One card is reached by the Tab key.
	const reached = () => screen.getAllByRole('link').filter((it) => it.tabIndex === 0 && it.id);
	expect(reached()).toHaveLength(1);
	heat.focus();
	await fireEvent.keyDown(heat, { key: 'ArrowRight' });
	await waitFor(() => expect(document.activeElement?.textContent).toContain('Ronin'));
	expect(reached()[0]).toBe(document.activeElement);
	await fireEvent.keyDown(document.activeElement!, { key: 'End' });
	await waitFor(() => expect(document.activeElement?.textContent).toContain('Andor'));
	await fireEvent.keyDown(document.activeElement!, { key: 'Home' });
	await waitFor(() => expect(document.activeElement).toBe(heat));
});

test('of a large library only the cards around the viewport are written', async () => {
	const first = Array.from({ length: 100 }, (_, n) => title(n + 1, `Film ${n + 1}`));
	gateway({ '/api/vod/all/': page(first, 125_000) });
	render(Library, {});
	await screen.findByRole('link', { name: /^Film 1 / });
	const cards = within(screen.getByRole('list', { name: 'Films and series' })).getAllByRole('listitem');
	expect(cards.length).toBeLessThan(60);
	expect(cards[0]?.getAttribute('aria-setsize')).toBe('125000');
	const pages = asked.filter((it) => it.path === '/api/vod/all/').map((it) => it.query.get('page'));
	expect(new Set(pages)).toEqual(new Set(['1']));
});

test('filters of the address are those of the request', async () => {
	go('/library?kind=movie&q=heat&category=4&year=1990-1999&order=-rating');
	gateway({
		'/api/vod/movies/': page([title(1, 'Heat')]),
		'/api/vod/categories/': [{ id: 4, name: 'Drama', category_type: 'movie', m3u_accounts: [] }],
	});
	render(Library, {});
	await screen.findByRole('link', { name: /Heat/ });
	const query = asked.find((it) => it.path === '/api/vod/movies/')?.query;
	expect(Object.fromEntries(query ?? [])).toMatchObject({
		search: 'heat',
		category: '4',
		year_gte: '1990',
		year_lte: '1999',
		ordering: '-rating',
		page_size: '100',
	});
	// A reload shows the chosen filters, by name.
	await waitFor(() =>
		expect(screen.getByRole<HTMLInputElement>('combobox', { name: 'Category' }).value).toBe('Drama'),
	);
});

test('without a match the filters can be cleared', async () => {
	go('/library?q=nothing');
	gateway({
		'/api/vod/all/': (query: URLSearchParams) => page(query.get('search') ? [] : [title(1, 'Heat')]),
	});
	render(Library, {});
	await fireEvent.click(await screen.findByRole('button', { name: 'Clear the filters' }));
	expect(await screen.findByRole('link', { name: /Heat/ })).toBeTruthy();
	expect(location.search).toBe('');
});

test.each([
	[10, 'Go to the sources'],
	[0, 'There is no film or series that you may watch.'],
])('an empty library says at level %d what to do', async (level, words) => {
	session.user = user(level);
	gateway({ '/api/vod/all/': page([]) });
	render(Library, {});
	expect(await screen.findByText(words)).toBeTruthy();
});

test('a failure shows the message of the gateway, and another try helps', async () => {
	let isDown = true;
	const answer = () =>
		isDown
			? new Response(JSON.stringify({ detail: 'The index is not up to date yet.' }), { status: 503 })
			: page([title(1, 'Heat')]);
	gateway({ '/api/vod/all/': answer });
	render(Library, {});
	expect((await screen.findByRole('alert')).textContent).toContain('The index is not up to date yet.');
	isDown = false;
	await fireEvent.click(screen.getByRole('button', { name: 'Retry' }));
	expect(await screen.findByRole('link', { name: /Heat/ })).toBeTruthy();
	expect(screen.queryByRole('alert')).toBeNull();
});

const film = {
	'/api/vod/movies/7/': title(7, 'Heat', { description: 'A thief and a policeman.' }),
	'/api/vod/movies/7/providers/': [version(8, 'Heat (1995)'), version(9, 'DE - Heat', { label: 'DE' })],
	'/api/vod/movies/7/provider-info/': {
		o_name: 'Heat',
		description: '',
		release_date: '1995-12-15',
		director: 'Michael Mann',
		actors: 'Al Pacino',
		country: 'US',
		age: '16',
		genre: 'Crime',
		rating: '8.3',
		duration_secs: 10_200,
	},
	'/api/vod/favorites/': page([]),
};

test('a film shows what is known of it, its versions, and the star', async () => {
	let isStarred = false;
	gateway({
		...film,
		'PUT /api/vod/movies/7/favorite/': () => {
			isStarred = true;
			return new Response(null, { status: 204 });
		},
	});
	render(Library, { id: 'movie-7' });
	expect(await screen.findByRole('heading', { level: 1, name: 'Heat' })).toBeTruthy();
	expect(screen.getByText('A thief and a policeman.')).toBeTruthy();
	expect(await screen.findByText('Michael Mann')).toBeTruthy();
	expect(screen.getByText('2 h 50 min')).toBeTruthy();
	expect(await screen.findByText('DE - Heat')).toBeTruthy();
	expect(screen.getByRole('button', { name: 'Play' })).toBeTruthy();
	await fireEvent.click(await screen.findByRole('button', { name: 'Favourite: Heat' }));
	await waitFor(() => expect(isStarred).toBe(true));
	await waitFor(() =>
		expect(screen.getByRole('button', { name: 'Favourite: Heat' }).getAttribute('aria-pressed')).toBe('true'),
	);
	// What admins do and see is for admins.
	for (const words of ['same TMDB id 949', 'Merge with another title'])
		expect(screen.queryByText(words)).toBeNull();
	expect(screen.queryByRole('button', { name: 'Actions' })).toBeNull();
});

test('an admin hides a title, and splits a version off', async () => {
	session.user = user(10);
	const bodies: unknown[] = [];
	gateway({
		...film,
		'POST /api/vod/movies/bulk-edit/': (_: unknown, body: unknown) => {
			bodies.push(body);
			return { message: 'Changed 1 titles', updated_count: 1, undo: null };
		},
		'POST /api/vod/movies/7/split/': (_: unknown, body: unknown) => {
			bodies.push(body);
			return { message: 'Split 1 relation of "Heat" off', id: 7, split_id: 12, undo: null };
		},
	});
	render(Library, { id: 'movie-7' });
	expect((await screen.findAllByText('same TMDB id 949')).length).toBe(2);
	await fireEvent.click(screen.getByText('Hide'));
	await waitFor(() => expect(bodies).toEqual([{ ids: [7], values: { hidden: true } }]));
	await fireEvent.click(screen.getAllByText('Make it a title of its own')[1]!);
	await waitFor(() => expect(bodies[1]).toEqual({ relation_ids: [9] }));
});

test('a provider that does not answer leaves the rest of the page usable', async () => {
	gateway({
		...film,
		'/api/vod/movies/7/provider-info/': () =>
			new Response(JSON.stringify({ detail: 'The panel asks to wait.' }), { status: 503 }),
	});
	render(Library, { id: 'movie-7' });
	expect((await screen.findByRole('alert')).textContent).toContain('The panel asks to wait.');
	expect(screen.getByText('A thief and a policeman.')).toBeTruthy();
	expect(screen.getByRole('button', { name: 'Play' })).toBeTruthy();
});

test('a series shows a season at a time', async () => {
	const episode = (id: number, season_number: number, episode_number: number, name: string) => ({
		id,
		uuid: `e${id}`,
		series: { id: 3, uuid: 'u3', name: 'Andor' },
		name,
		description: null,
		air_date: null,
		rating: null,
		duration_secs: 2400,
		season_number,
		episode_number,
		tmdb_id: null,
		imdb_id: null,
		image_url: null,
		custom_properties: {},
		providers: [{ container_extension: 'mkv' }],
	});
	gateway({
		'/api/vod/series/3/': title(3, 'Andor', { episode_count: 3 }),
		'/api/vod/series/3/providers/': [version(5, 'Andor')],
		'/api/vod/series/3/provider-info/': { ...film['/api/vod/movies/7/provider-info/'], cast: 'Diego Luna' },
		'/api/vod/series/3/episodes/': [
			episode(31, 1, 1, 'Kassa'),
			episode(32, 1, 2, 'That Would Be Me'),
			episode(33, 2, 1, 'One Year Later'),
		],
		'/api/vod/favorites/': page([title(3, 'Andor', { content_type: 'series' })]),
	});
	render(Library, { id: 'series-3' });
	expect(await screen.findByText('That Would Be Me')).toBeTruthy();
	expect(screen.queryByText('One Year Later')).toBeNull();
	expect(await screen.findByText('Diego Luna')).toBeTruthy();
	await fireEvent.click(screen.getByRole('tab', { name: /Season 2/ }));
	expect(await screen.findByText('One Year Later')).toBeTruthy();
	expect(screen.getByRole('button', { name: 'Play: S02E01 One Year Later' })).toBeTruthy();
	await waitFor(() =>
		expect(screen.getByRole('button', { name: 'Favourite: Andor' }).getAttribute('aria-pressed')).toBe(
			'true',
		),
	);
});

test.each(['movie-9', 'nonsense'])('an unknown title is said to be unknown: %s', async (id) => {
	gateway({});
	render(Library, { id });
	expect((await screen.findByRole('alert')).textContent).toContain('There is no such title');
});

const tail = 'Open the title in another player.';

test.each([
	[
		'a Matroska file',
		[0x1a, 0x45, 0xdf, 0xa3, 0x6d],
		`This browser cannot play files of the kind Matroska (MKV). ${tail}`,
	],
	['a web page', [0x3c, 0x68, 0x74, 0x6d, 0x6c], `This browser does not know this kind of file. ${tail}`],
])('%s is not played, and its kind is named', async (_, bytes, words) => {
	go('/library/movie-7?play=film&version=9');
	gateway({
		...film,
		'/api/vod/movies/7/stream/': {
			url: 'http://other:1/proxy/vod/movie/u7?token=t',
			container_extension: 'mkv',
			duration_secs: null,
		},
		'/proxy/vod/movie/u7': () =>
			new Response(new Uint8Array(bytes), { status: 206, headers: { 'Content-Range': `bytes 0-4/5` } }),
	});
	render(Library, { id: 'movie-7' });
	expect(await screen.findByText(words)).toBeTruthy();
	const query = asked.find((it) => it.path === '/proxy/vod/movie/u7')?.query;
	expect(Object.fromEntries(query ?? [])).toEqual({ token: 't', m3u_account_id: '1', stream_id: '9' });
	expect(screen.getByRole('button', { name: 'Open in another player' })).toBeTruthy();
	// Another try would have the same outcome.
	expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
});

test('the reason why a title does not play is that of the gateway, and can be tried again', async () => {
	go('/library/movie-7?play=film');
	let tries = 0;
	gateway({
		...film,
		'/api/vod/movies/7/stream/': {
			url: 'http://other:1/proxy/vod/movie/u7?token=t',
			container_extension: 'mp4',
			duration_secs: null,
		},
		'/proxy/vod/movie/u7': () => {
			tries += 1;
			return new Response(JSON.stringify({ detail: 'All connections are in use.' }), { status: 503 });
		},
	});
	render(Library, { id: 'movie-7' });
	expect(await screen.findByText('All connections are in use.')).toBeTruthy();
	await fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
	await waitFor(() => expect(tries).toBe(2));
});

const progress = (id: number, more: object = {}) => ({
	id,
	uuid: `p${id}`,
	content_type: 'movie',
	name: 'Heat',
	position_secs: 1800,
	duration_secs: 6000,
	watched: false,
	play_count: 0,
	season_number: null,
	episode_number: null,
	series_id: null,
	series_name: null,
	updated_at: null,
	...more,
});

test('what was begun is listed first, and marks are on the posters', async () => {
	session.user = { ...user(1)!, may_record: true };
	gateway({
		'/api/vod/all/': page([
			title(1, 'Heat', { created_at: '2020-01-01T00:00:00Z' }),
			title(2, 'Ronin', { created_at: new Date().toISOString() }),
		]),
		'/api/vod/progress/': page([
			progress(1),
			progress(2, { name: 'Ronin', position_secs: 0, watched: true }),
		]),
		'/api/channels/recordings/': page([{ title: 'heat (1995)' }]),
	});
	render(Library, {});
	const resume = await screen.findByRole('link', { name: 'Resume: Heat' });
	expect(resume.getAttribute('href')).toBe('/library/movie-1?play=film');
	expect(screen.queryByRole('link', { name: 'Resume: Ronin' })).toBeNull();
	await waitFor(() =>
		expect(screen.getByRole('link', { name: /Heat.*1991/ }).textContent).toContain('recorded'),
	);
	const ronin = screen.getByRole('link', { name: /Ronin.*1992/ });
	expect(ronin.textContent).toContain('watched');
	expect(ronin.textContent).not.toContain('recorded');
});

test('a film goes on where it was left, or from its start', async () => {
	go('/library/movie-1');
	gateway({
		'/api/vod/movies/1/': title(1, 'Heat'),
		'/api/vod/progress/': page([progress(1)]),
		'PUT /api/vod/movies/1/progress/': progress(1, { position_secs: 0, watched: true }),
	});
	render(Library, { id: 'movie-1' });
	await screen.findByRole('button', { name: 'Resume at 30:00' });
	// Without a picture, the drawing has the name.
	expect(document.querySelector('.poster bdi')?.textContent).toBe('Heat');
	expect(screen.getByText('30:00 of 1:40:00')).toBeTruthy();
	await fireEvent.click(screen.getByRole('button', { name: 'Watched: Heat' }));
	await waitFor(() => expect(asked.find((it) => it.method === 'PUT')?.body).toEqual({ watched: true }));
	await fireEvent.click(screen.getByRole('button', { name: 'Start over' }));
	expect(location.search).toBe('?play=film&from=start');
});
