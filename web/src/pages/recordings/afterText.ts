import { number, plural, texts } from '$lib/i18n';
import type { Recording } from './recordings';

type Search = NonNullable<Recording['comskip']>['status'];
type Cut = NonNullable<Recording['cut']>['status'];
type Conversion = NonNullable<Recording['remux']>['status'];

const conversions: Record<Conversion, (format: string) => string> = {
	queued: (format) => `will be converted to ${format}`,
	running: (format) => `is being converted to ${format}`,
	completed: (format) => format,
	failed: (format) => `was not converted to ${format}`,
};

export const afterText = texts('afterRecordings', {
	title: 'After a recording',
	remux: (status: Conversion, format: string, reason: string | null) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(': '),
	container: 'Container',
	containerHint: 'The transport stream stays until the new file has the same streams and length.',
	containers: { none: 'as recorded (transport stream)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Write a description for media servers beside each file (NFO)',
	artwork: 'Write a picture for media servers beside each file',
	mode: 'Commercials that were found',
	modeHint: 'The recording stays as it is.',
	modes: { mark: 'are marked', cut: 'are marked, and left out in a copy beside the recording' },
	saved: 'Saved.',

	commercials: 'Commercials',
	search: 'Search for commercials',
	searches: {
		queued: 'waits for its turn',
		running: 'searching',
		completed: 'found',
		none_found: 'none found',
		failed: 'failed',
	} satisfies Record<Search, string>,
	breaks: (n: number, length: string) => plural(n, `1 break, ${length}`, `${number(n)} breaks, ${length}`),
	columns: { start: 'From', end: 'Until', length: 'Length' },
	cut: 'Copy without commercials',
	cuts: {
		queued: 'waits for its turn',
		running: 'is being made',
		completed: 'ready',
		failed: 'failed',
	} satisfies Record<Cut, string>,
	playCut: 'Play the copy',
	saveCut: 'Download the copy',
	notSearched: 'Nobody has searched for commercials yet.',

	comskip: 'Commercials (comskip)',
	missing: 'The program comskip is not installed, or programs.comskip names another one.',
	enabled: 'Search for commercials after each recording',
	config: 'Configuration',
	configHint: 'Lines of comskip.ini, such as detect_method=43. Empty: the values of comskip itself.',
	upload: 'Read the configuration from a file',
	uploaded: 'The configuration was replaced.',
});
