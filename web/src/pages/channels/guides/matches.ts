// Results of matching: which of them a list shows, and the request that links channels.

import type { Schemas } from '$lib/api';
import type { Batch } from '../../common/bulk';

export type Match = Schemas['MatchedChannel'];
export type Decision = Match['decision'];

/** Results that an answer lists; the counts of the answer are exact beyond them. */
export const LISTED_MAX = 1_000;

export const DECISIONS = ['link', 'tie', 'below_threshold', 'no_candidate', 'no_name'] as const;

/** Returns the guide channel that fits, otherwise the most similar one. */
export function bestOf(match: Match): Schemas['MatchCandidate'] | undefined {
	return match.candidates.find((it) => it.epg_data_id === match.epg_data_id) ?? match.candidates[0];
}

/** Returns the results with this decision; all of them without one. */
export function shownOf(all: readonly Match[], decision: string | null): Match[] {
	return all.filter((it) => !decision || it.decision === decision);
}

/** Returns the rows of a request without some of them. `null` are the rows that the gateway chooses itself. */
export function rowsWithout(rows: Batch | null, left: ReadonlySet<number>): Partial<Batch> {
	if (rows === null) return left.size > 0 ? { except: [...left] } : {};
	if ('ids' in rows) return { ids: rows.ids.filter((it) => !left.has(it)) };
	return { filter: rows.filter, except: [...new Set([...rows.except, ...left])] };
}
