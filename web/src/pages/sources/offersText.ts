import { number, plural, texts } from '$lib/i18n';

const channels = (n: number) => plural(n, '1 channel', `${number(n)} channels`);

/** Texts of the guides that a playlist names. */
export const offersText = texts('offers', {
	intro:
		'The playlist names these guides. Read them to see how many of your channels each would serve, then add those that you need.',
	emptyTitle: 'The playlist names no guide',
	emptyText: 'Guides with an address of their own are added under Sources, Guides.',
	readAll: (n: number) => plural(n, 'Read the guide', `Read all ${number(n)} guides`),
	read: 'Read',
	readOne: (address: string, n: string) => `Read guide ${n}: ${address}`,
	reading: (n: number, of: number) => `Reading guide ${number(n)} of ${number(of)}`,
	stop: 'Stop reading',
	add: 'Add as source',
	addOne: (address: string, n: string) => `Add guide ${n} as a source: ${address}`,
	added: (name: string) => `Added ${name}. Its first refresh has started.`,
	isAdded: 'added',
	open: 'Open',
	openOne: (n: string) => `Open guide ${n}`,
	showAddresses: 'Show addresses',
	hideAddresses: 'Hide addresses',
	serves: (n: number, added: number) =>
		n === 0
			? 'Serves none of your channels'
			: `Serves ${channels(n)}, ${added === 0 ? 'all of which have a guide' : `${number(added)} of them without a guide now`}`,
	inGuide: (n: number, same: number) => `${channels(n)} in the guide, ${number(same)} with the same id`,
});
