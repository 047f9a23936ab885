// The rows of the guide: the channels that the user may watch.

import { api, listed, ok, type Schemas } from '$lib/api';
import { session } from '$lib/auth';
import { arrayRows, PagedRows, type Rows } from '$lib/list';
import { resource } from '$lib/ui';

/** What the guide shows of a channel. */
export type GuideRow = Pick<Schemas['ChannelSummary'], 'id' | 'uuid' | 'name' | 'channel_number' | 'logo_id'>;

export interface RowFilter {
	search: string;
	group: number | undefined;
}

/** In a component: the channels that match. Users of level 0 have the short list only, which is not paged. */
export function guideRows(filter: () => RowFilter): { rows: () => Rows<GuideRow>; refresh: () => void } {
	const isPaged = $derived(session.level >= 1);
	const queryOf = ({ search, group }: RowFilter) => ({
		search,
		...(group === undefined ? {} : { channel_group: [String(group)] }),
	});
	const paged = new PagedRows<GuideRow>({
		key: (it) => it.id,
		fetch: async (page, page_size, signal) => {
			const query = {
				page,
				page_size,
				...queryOf(filter()),
				ordering: 'channel_number' as const,
				enabled: true,
			};
			// The short list: a whole record has six times as many bytes.
			const found = await ok(api.GET('/api/channels/channels/summary/', { params: { query }, signal }));
			return Array.isArray(found)
				? { count: found.length, results: found, next: null, previous: null }
				: { ...found, next: found.next ?? null, previous: found.previous ?? null };
		},
	});
	$effect(() => {
		JSON.stringify(filter());
		if (isPaged) paged.reset();
	});
	const summary = resource(
		() => ({ ...filter(), isNeeded: !isPaged }),
		async ({ isNeeded, ...wanted }, signal): Promise<GuideRow[]> =>
			isNeeded
				? listed(
						await ok(
							api.GET('/api/channels/channels/summary/', { params: { query: queryOf(wanted) }, signal }),
						),
					)
				: [],
	);
	const short = arrayRows(
		() => summary.value ?? [],
		(it: GuideRow) => it.id,
	);
	return {
		rows: () => (isPaged ? paged : short),
		refresh: () => (isPaged ? paged.refresh() : void summary.reload()),
	};
}
