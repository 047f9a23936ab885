import { expect, test } from 'vitest';
import { joinedChoices, nameForLogo } from './logoChoices';

test.each([
	['News HD', 'News'],
	['UK: BBC One FHD (backup)', 'BBC One'],
	['DE | Das Erste 1080p', 'Das Erste'],
	['A&E', 'A&E'],
	['Canal+ 4K [VIP]', 'Canal+'],
	['4K', ''],
	['Rai 1', 'Rai 1'],
	['HDTV', 'HDTV'],
])('the name of a logo for %s', (name, expected) => expect(nameForLogo(name)).toBe(expected));

test('each picture is offered once, and those that the gateway has are shown', () => {
	const logo = (id: number, url: string, name: string) => ({
		id,
		url,
		name,
		cache_url: `/api/channels/logos/${id}/cache/`,
		channel_count: 0,
		channel_names: [],
		is_uploaded: false,
		is_used: false,
	});
	const choices = joinedChoices(
		{ url: 'http://a/1.png', name: 'News' },
		[
			{ url: 'http://a/1.png', name: 'News HD' },
			{ url: null, name: 'News SD' },
			{ url: 'http://a/2.png', name: 'News FHD' },
		],
		[logo(1, 'http://a/2.png', 'Two'), logo(2, 'http://a/3.png', 'Three')],
	);
	expect(choices.map((it) => [it.url, it.origin, it.logo?.id ?? null])).toEqual([
		['http://a/1.png', 'guide', null],
		['http://a/2.png', 'stream', 1],
		['http://a/3.png', 'library', 2],
	]);
	expect(joinedChoices(null, [], [])).toEqual([]);
});
