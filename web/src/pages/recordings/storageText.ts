import { number, plural, texts } from '$lib/i18n';
import type { Limit } from './storage';

const none = 'Empty: no limit.';

export const storageText = texts('recordingStorage', {
	title: 'Storage',
	limitsTitle: 'Limits',
	limitsText: 'Of recordings that are over, the oldest are deleted first. Protected ones stay.',
	limits: {
		quota_bytes: ['Size of all recordings, in GiB', none],
		user_quota_bytes: ['Size of the recordings of each user, in GiB', none],
		retention_free_bytes: ['Free space that is kept on the disk, in GiB', none],
		retention_days: ['Days for which recordings are kept', 'Empty: as long as there is space.'],
		retention_count: ['Recordings that are kept', none],
	} satisfies Record<Limit, [string, string]>,
	saved: 'Saved.',
	facts: { folder: 'Folder', available: 'Free space', used: 'In use', protected: 'Protected' },
	unknown: 'unknown',
	used: (size: string, n: number) => `${size}, ${plural(n, '1 recording', `${number(n)} recordings`)}`,
	unmounted: 'The folder is not mounted',
	unmountedText:
		'It lacks the file .headwater-recordings. Nothing is recorded or deleted until the disk is back; the list of recordings stays.',
	full: 'The disk is almost full',
	fullText: 'No recording begins. Delete recordings, or set limits below that delete old ones.',
	users: 'Users',
	columns: { user: 'User', recordings: 'Recordings', used: 'In use', quota: 'Limit' },
	nobody: 'no user',
	noQuota: 'no limit',
	ofQuota: (share: string, quota: string) => `${share} of ${quota}`,
	isFull: 'full',
	connections: 'Connections',
	reserve: 'Minutes before a recording from which its connection is reserved',
	reserveHint: 'New viewers do not get it in this time. 0: none is reserved.',
	disconnect: 'Recordings may disconnect viewers',
	disconnectHint: 'If a programme gets no connection otherwise.',
	settings: 'Other settings of recordings',
});
