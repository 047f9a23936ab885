import { bytes, number, plural, texts } from '$lib/i18n';

const channels = (n: number) => plural(n, '1 channel', `${number(n)} channels`);
const logos = (n: number) => plural(n, '1 logo', `${number(n)} logos`);

export const text = texts('logos', {
	logos,
	channels,
	search: 'Search logos',
	use: 'Use',
	uses: { any: 'Used and unused', used: 'Used by channels', unused: 'Unused' },
	columns: { name: 'Name', address: 'Address', channels: 'Channels' },
	add: 'Add logo',
	deleteUnused: 'Delete unused logos',
	deleteUnusedTitle: 'Delete all logos that no channel uses?',
	deleteText: 'Channels lose deleted logos. You can undo it for a day.',
	deleteMany: (n: number) => `Delete ${logos(n)}`,
	question: (action: string) => `${action}?`,
	batches: (n: number) => `At most ${logos(n)} can be deleted at once.`,
	emptyTitle: 'No logos yet',
	emptyText: 'Logos come with playlists, or are added here.',
	noMatch: 'No logo matches',
	newTitle: 'Add a logo',
	wayLabel: 'Where the logo is from',
	ways: { url: 'Address', file: 'File' },
	name: 'Name',
	nameHint: 'By default that of the file.',
	url: 'Address of the picture',
	file: 'Picture',
	fileHint: (n: number) => `PNG, JPEG, WebP, GIF or SVG, up to ${bytes(n)}.`,
	fileMissing: 'Choose a file.',
	uploaded: 'uploaded',
	usedBy: (n: number) => (n === 0 ? 'No channel uses it.' : `Used by ${channels(n)}:`),
	saved: 'Saved.',
	uploading: 'Uploading',
});
