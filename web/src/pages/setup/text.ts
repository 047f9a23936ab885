import { number, plural, texts } from '$lib/i18n';

const streams = (n: number) => plural(n, '1 stream', `${number(n)} streams`);
const channels = (n: number) => plural(n, '1 channel', `${number(n)} channels`);
const groups = (n: number) => plural(n, '1 group', `${number(n)} groups`);

export const text = texts({
	en: {
		title: 'Set-up',
		product: 'Headwater',
		stepsLabel: 'Steps',
		steps: {
			admin: 'First admin',
			source: 'Source',
			groups: 'Groups',
			channels: 'Channels',
			addresses: 'Players',
			test: 'Test',
		},
		stepOf: (n: number, of: number, name: string) => `Step ${number(n)} of ${number(of)}: ${name}`,
		continue: 'Continue',
		leave: 'Leave the set-up',
		adminTitle: 'Create the first admin',
		adminText: 'The admin sets up the gateway. Further users follow later.',
		username: 'User name',
		password: 'Password',
		passwordHint: 'At least 10 characters, without the user name.',
		code: 'Set-up code',
		codeHint: 'The part behind # of the address that Headwater printed at its start.',
		noCode:
			'The code is printed in the log of the gateway at each start. On its machine you can also run: headwater user add admin --superuser',
		create: 'Create and sign in',
		signInTitle: 'Sign in',
		signInText: 'An admin exists. Sign in to continue.',
		notAdmin: 'Only admins can continue the set-up.',
		signIn: 'Sign in',
		sourceTitle: 'Where do the streams come from?',
		sourcesKnown: (n: number) => plural(n, '1 source is set up.', `${number(n)} sources are set up.`),
		anotherSource: 'Add another source',
		groupsTitle: 'Which groups do you want?',
		groupsText: 'Groups that you leave out are not imported. You can change this at any time under Sources.',
		noGroups: 'The list has no groups. Continue with all streams.',
		source: 'Source',
		group: 'Group',
		streamsTitle: 'Streams',
		selected: (n: number, of: number, s: number) => `${number(n)} of ${groups(of)}, ${streams(s)}`,
		noneSelected: 'Select at least one group.',
		search: 'Search groups',
		applying: 'The list is read again without the groups that you left out.',
		channelsTitle: 'Make channels from the streams',
		same: 'Streams of the same channel',
		sameHint: 'One channel can have several streams. If one fails, the next one plays.',
		merge: {
			name: 'have the same name',
			tvg_id: 'have the same guide id',
			none: 'every stream becomes a channel',
		},
		numbers: 'Numbers',
		numbering: {
			provider: 'of the provider, otherwise the lowest free ones',
			from: 'from a first number on',
		},
		firstNumber: 'First number',
		previewOf: (n: number, of: number) =>
			n < of ? `Preview of the first ${number(n)} of ${streams(of)}` : `Preview of ${streams(of)}`,
		becomes: (s: number, c: number) => `${streams(s)} become ${channels(c)}.`,
		toExisting: (n: number) => `${streams(n)} are added to channels that exist.`,
		make: (n: number) => `Make channels of ${streams(n)}`,
		skip: 'Continue without',
		making: (done: number, of: number) => `${number(done)} of ${streams(of)}`,
		made: (created: number, merged: number) =>
			merged > 0
				? `Created ${channels(created)} and added ${streams(merged)} to channels.`
				: `Created ${channels(created)}.`,
		numberColumn: 'No.',
		nameColumn: 'Name',
		streamsColumn: 'Streams',
		noStreams: 'This source has no live streams.',
		addressesTitle: 'Enter these in your players',
		testTitle: 'Watch a channel',
		testChannel: 'Channel',
		noChannels: 'There are no channels yet.',
		checks: 'Checks',
		check: {
			slot: 'Connection of the source',
			connection: 'Connection to the provider',
			packet: 'First data',
			picture: 'Picture in this browser',
		},
		checkStates: { waiting: 'waiting', good: 'works', bad: 'failed' },
		finished: 'The channel plays. The set-up is complete.',
		toNow: 'Open Headwater',
	},
});
