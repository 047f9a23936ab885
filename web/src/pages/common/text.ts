import { number, plural, texts } from '$lib/i18n';

export const text = texts('shared', {
	xtreamTitle: 'Player apps that ask for a server, a user name and a password',
	server: 'Server',
	username: 'User name',
	password: 'Password',
	playlistTitle: 'Players that take addresses',
	kinds: {
		xtream: 'Server',
		m3u: 'Playlist (M3U)',
		xmltv: 'Guide (XMLTV)',
		m3u_with_key: 'Playlist with API key',
		xmltv_with_key: 'Guide with API key',
		recordings: 'Recordings (M3U)',
		recordings_guide: 'Guide of recordings (XMLTV)',
		tuner: 'Tuner for media servers',
	},
	ofProfile: (kind: string, profile: string) => `${kind}, ${profile}`,
	holdsPassword: 'These addresses contain the password. Whoever has one can watch.',
	withKeyTitle: 'Addresses that need a header',
	withKey: (header: string) => `Programs send the API key in the header ${header}.`,
	loopback: (url: string) =>
		`${url} is reached from this machine only. Open this page under the address of the machine in your network, or set the public address in the settings.`,
	allowNetworks: 'Change the allowed networks',
	favourite: (name: string) => `Favourite: ${name}`,
	sleep: {
		title: 'Sleep timer',
		after: 'Streams end after',
		start: 'Start',
		change: 'Change',
		remove: 'Remove the timer',
		endsAt: (time: string, when: string) => `All streams end at ${time} (${when}).`,
		isSet: 'The sleep timer is set.',
		isRemoved: 'The sleep timer is removed.',
	},
	batch: (done: number, of: number) => `${number(done)} of ${plural(of, '1 batch', `${number(of)} batches`)}`,
	stoppedAfter: (done: number, of: number, reason: string) =>
		`${number(done)} of ${plural(of, '1 batch', `${number(of)} batches`)} finished, then: ${reason}`,
	undone: 'Undone.',
	pagesOf: (label: string) => `Pages: ${label}`,
	older: 'Older',
	newer: 'Newer',
	range: (from: number, until: number, all: number) =>
		`${number(from)} to ${number(until)} of ${number(all)}`,
	order: {
		moveUp: (name: string) => `Move ${name} up`,
		moveDown: (name: string) => `Move ${name} down`,
		moveTo: (name: string) => `Position of ${name}`,
		movedTo: (name: string, n: number) => `${name} is at position ${number(n)}`,
		shown: (n: number, of: number) => `${number(n)} of ${number(of)}`,
	},
});
