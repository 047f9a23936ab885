import { number, plural, texts } from '$lib/i18n';

export const text = texts('lineups', {
	add: 'Add lineup',
	newTitle: 'Add a lineup',
	emptyTitle: 'No lineups yet',
	emptyText:
		'A lineup is a selection of channels for some users or for a tuner. Without lineups, everybody has all channels.',
	columns: { name: 'Name', channels: 'Channels', added: 'New channels' },
	channels: (n: number) => plural(n, '1 channel', `${number(n)} channels`),
	addsNew: 'are added',
	addsNone: 'are left out',
	name: 'Name',
	description: 'Description',
	addNew: 'New channels belong to it',
	addNewHint: 'A lineup that is created without this begins without channels.',
	showChannels: 'Show its channels',
	copy: 'Create a copy',
	copyName: (name: string) => `${name} (copy)`,
	saved: 'Saved.',
	deleteTitle: (name: string) => `Delete the lineup ${name}?`,
	deleteText: 'Its channels stay. Users and tuners of the lineup lose it. This cannot be undone.',
	deleted: (name: string) => `Deleted the lineup ${name}.`,
});
