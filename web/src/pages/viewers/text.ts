import { number, plural, texts } from '$lib/i18n';
import type { Kind } from './viewers';

export const text = texts({
	en: {
		title: 'Viewers',
		count: (n: number) => plural(n, '1 viewer', `${number(n)} viewers`),
		selected: (n: number, of: number) => `${number(n)} of ${plural(of, '1 viewer', `${number(of)} viewers`)}`,
		stale: (seconds: number) => `stale, ${number(seconds)} s`,
		search: 'Search user, device, address, channel or programme',
		kind: 'What',
		anyKind: 'everything',
		kinds: { live: 'live channels', title: 'films and series', past: 'past of channels' } satisfies Record<
			Kind,
			string
		>,
		format: 'Format',
		any: 'any',
		node: 'Node',
		columns: {
			user: 'User',
			device: 'Device',
			address: 'Address',
			name: 'Watches',
			seconds: 'Since',
			rate: 'Rate',
			lost: 'Lost',
			format: 'Format',
			node: 'Node',
			stop: 'Disconnect',
		},
		anonymous: 'no login',
		from: (time: string) => `from ${time}`,
		watching: (time: string) => `for ${time}`,
		formats: {
			mpegts: 'MPEG-TS',
			'hls-ts': 'HLS (MPEG-TS)',
			'hls-fmp4': 'HLS (fMP4)',
			'll-hls': 'HLS with low latency',
			fmp4: 'fMP4',
			udp: 'UDP output',
			rtp: 'RTP output',
		} as Record<string, string>,
		file: 'file',
		stop: (name: string) => `Disconnect ${name}`,
		none: 'Nobody watches',
		noneText: 'Viewers of channels, films, series and of the past appear here while they watch.',
		noneOfUser: 'This user watches nothing at the moment.',
		noMatch: 'No viewer matches',
		clear: 'Show all viewers',
	},
});
