import { number, plural, texts } from '$lib/i18n';
import type { ChangeKind, IdentityKey } from './identity';

const streams = (n: number) => plural(n, '1 stream', `${number(n)} streams`);

/** Name and explanation of each key. */
const keyOf: Record<IdentityKey, readonly [string, string]> = {
	panel_id: ['Number at the panel', 'The number in the address of a panel: …/user/password/NUMBER.ts.'],
	address: ['Address', 'The whole address. It is always compared.'],
	bare_address: [
		'Address without its token',
		'Without the parts that change: tokens, times of expiry, and the login of the source.',
	],
	guide_id: ['Guide id', 'The id in the list: tvg-id, else channel-id, else tvc-guide-stationid.'],
	name_and_group: ['Name and group', 'Both together, so one name can be in two groups.'],
	name: ['Name', 'The weakest key. A list in which only names agree waits for your decision.'],
};

/** Texts about how a refresh recognises streams. */
export const identityText = texts('identity', {
	intro:
		'Providers change addresses, names and groups. A refresh compares each entry of the list with the known streams by these keys, from the first to the last. A stream that is recognised keeps its channels and your changes. A key counts only if no other entry and no other stream has the same value.',
	keys: 'Keys by which streams are recognised',
	keyOf,
	recognises: (n: number) => `Recognises ${streams(n)}.`,
	preview: 'Preview a refresh',
	defaultOrder: 'Default order',
	saved: 'Saved. It applies at the next refresh.',
	read: (n: number) => `The list has ${plural(n, '1 entry', `${number(n)} entries`)}. Nothing was changed.`,
	waits: 'The refresh would wait for your decision:',
	counts: 'Streams after the refresh',
	count: {
		unchanged: 'stay as they are',
		moved: 'get another address',
		updated: 'get another name, group or other value',
		created: 'are new',
		stale: 'are no longer in the list',
		deleted: 'are removed',
		ambiguous: 'could be several entries, so none is taken',
		leftOut: 'entries are left out by filters and groups',
	},
	lists: 'Changed streams',
	listOf: { moved: 'Another address', updated: 'Changed', created: 'New', missing: 'Missing' } as Record<
		ChangeKind,
		string
	>,
	columns: { name: 'Name', host: 'Host', key: 'Recognised by' },
	listed: (n: number, of: number) => `${number(n)} of ${streams(of)} are listed.`,
});
