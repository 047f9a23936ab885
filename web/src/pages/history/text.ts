import { number, plural, texts } from '$lib/i18n';

export const text = texts('history', {
	intro:
		'Measured every ten seconds and kept on this gateway: five-minute steps for two days, hours for 60 days.',
	/** Of a gateway that is a node of a cluster. */
	introNode: (node: string) =>
		`Measured every ten seconds on the node ${node}, which keeps its own history: five-minute steps for two days, hours for 60 days.`,
	scope: 'Show',
	scopes: {
		gateway: 'Whole gateway',
		account: 'Account',
		channel: 'Channel',
		stream: 'Stream',
		user: 'User',
	},
	choose: {
		account: 'Choose an account to see its history.',
		channel: 'Choose a channel to see its history.',
		stream: 'Choose a stream to see its history.',
		user: 'Choose a user to see the history.',
	},
	streams: 'Streams of the channel',
	nobody: 'None chosen',
	range: 'Time',
	ranges: { '6h': '6 hours', '24h': '24 hours', '7d': '7 days', '60d': '60 days' },
	off: 'The history is off',
	offText: 'Nothing is kept. The settings switch it on.',
	offUser: 'No history of users is kept',
	offUserText: 'Rates and viewers of each user are kept only if the settings say so.',
	toSettings: 'Open the settings',
	nothing: 'Nothing known yet',
	nothingText: 'The first values appear after a minute.',
	charts: {
		rate: 'Rate',
		viewers: 'Viewers',
		slots: 'Connections in use',
		health: 'Time playing',
		failovers: 'Failovers',
		recordings: 'Disk of recordings',
	},
	series: {
		in: 'Received',
		out: 'Sent',
		viewers: 'Mean',
		viewersMax: 'Peak',
		slots: 'In use',
		limit: 'Limit',
		recordings: 'Size',
	},
	highest: (value: string) => `highest ${value}`,
	/** The chart in one sentence, for readers who do not see it. */
	said: (chart: string, parts: string) => `${chart}: ${parts}.`,
	seriesSaid: (name: string, newest: string, highest: string) => `${name} ${newest}, at most ${highest}`,
	unknown: 'unknown',
	noLimit: 'no limit',
	failovers: (n: number) => `${number(n)} ${plural(n, 'failover', 'failovers')}`,
	losses: (n: number) => `${number(n)} ${plural(n, 'failure', 'failures')} of streams`,
	playing: (share: string) => `played ${share} of the time in use`,
	notUsed: 'not in use',
	asTable: 'As a table',
	time: 'Time',
});
