import { afterEach, expect, test, vi } from 'vitest';
import { faceOf, glanceOf, glanceOfGroup, groupsOf, readPart } from './groups';
import type { Recording } from './recordings';

const NOW = Date.parse('2031-05-08T00:00:00Z');
const recording = (id: number, title: string, more: Partial<Recording> = {}) =>
	({
		id,
		title,
		status: 'completed',
		forecast: null,
		file_url: '/file',
		is_available: true,
		ended_at: '2031-04-01T00:00:00Z',
		artwork: null,
		...more,
	}) as Recording;

afterEach(() => vi.unstubAllGlobals());

test('recordings of one title are a group, at the place of the first', () => {
	const groups = groupsOf([recording(1, 'News'), recording(2, 'Heat'), recording(3, 'news ')]);
	expect(groups.map((it) => [it.title, it.recordings.map((of) => of.id)])).toEqual([
		['News', [1, 3]],
		['Heat', [2]],
	]);
});

test.each<[Partial<Recording>, string]>([
	[{ status: 'recording' }, 'running'],
	[{ status: 'failed' }, 'failed'],
	[{ status: 'interrupted' }, 'interrupted'],
	[{ status: 'scheduled', forecast: 'lost' }, 'conflict'],
	[{ status: 'scheduled', forecast: 'assigned' }, 'planned'],
	[{ is_available: false }, 'unavailable'],
	[{ ended_at: '2031-05-07T00:00:00Z' }, 'new'],
	[{}, 'done'],
])('%o is %s', (more, glance) => expect(glanceOf(recording(1, 'News', more), NOW)).toBe(glance));

test('a group shows what needs to be seen first, and the first picture', () => {
	const pictured = recording(3, 'News', { artwork: { url: '/picture' } as Recording['artwork'] });
	const group = {
		title: 'News',
		recordings: [recording(1, 'News'), recording(2, 'News', { status: 'failed' }), pictured],
	};
	expect(glanceOfGroup(group, NOW)).toBe('failed');
	expect(faceOf(group).id).toBe(3);
});

test('pages are read until all are there, each recording once', async () => {
	const asked: (string | null)[] = [];
	vi.stubGlobal('fetch', (request: Request) => {
		const page = new URL(request.url).searchParams.get('page');
		asked.push(page);
		const first = page === '1' ? 1 : 100;
		const results = Array.from({ length: page === '1' ? 100 : 51 }, (_, n) => recording(first + n, 'News'));
		return Promise.resolve(Response.json({ count: 150, next: null, previous: null, results }));
	});
	const { count, recordings } = await readPart('done', '', new AbortController().signal);
	expect([count, recordings.length, asked]).toEqual([150, 150, ['1', '2']]);
});
