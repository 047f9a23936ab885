import { expect, test } from 'vitest';
import { additionalSentence, sentencesOf } from './permissions';

test('permissions are sentences', () => {
	expect(
		sentencesOf({
			declared: true,
			api: ['channels:read', '*:write', 'later:read'],
			network: true,
			listen: [9000],
			programs: ['ffmpeg'],
			files: ['recordings', '/srv/guides:write'],
		}),
	).toEqual([
		'Reads channels, groups, logos and lineups.',
		'Reads and changes everything but users, plugins, integrations, stream profiles and back-ups.',
		'Reads later:read.',
		'Connects to any host, in your network and on the Internet.',
		'Accepts connections at port 9000.',
		'Starts the program ffmpeg.',
		'Reads files of recordings.',
		'Reads and changes files in /srv/guides.',
	]);
	expect(sentencesOf({ declared: false, api: ['full'], network: false })).toEqual([
		'Reads and changes everything in the gateway, except back-ups.',
	]);
	expect([sentencesOf(null), sentencesOf({ api: [], network: false })]).toEqual([[], []]);
});

test('additional permissions are the same sentences', () => {
	const all = [
		'API: streams:write',
		'use of the whole API',
		'connections to any host',
		'listening at port 9000',
		'starting the program ffmpeg',
		'files: logos',
		'something new',
	];
	expect(all.map(additionalSentence)).toEqual([
		'Reads and changes streams.',
		'Reads and changes everything in the gateway, except back-ups.',
		'Connects to any host, in your network and on the Internet.',
		'Accepts connections at port 9000.',
		'Starts the program ffmpeg.',
		'Reads files of logos.',
		'something new',
	]);
});
