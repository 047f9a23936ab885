// Time zones for fields.

import { api, ok } from '$lib/api';

/** Time zones that a search lists. */
const LISTED_MAX = 50;

let all: readonly string[] | null = null;

/** Returns the names with a text, regardless of case; blanks stand for the underscores of names. */
export const withText = (names: readonly string[], text: string): string[] => {
	const wanted = text.trim().toLowerCase().replaceAll(' ', '_');
	return names.filter((it) => it.toLowerCase().includes(wanted)).slice(0, LISTED_MAX);
};

/** Finds time zones for a field. */
export async function findZones(
	text: string,
	signal: AbortSignal,
): Promise<{ value: string; label: string }[]> {
	all ??= (await ok(api.GET('/api/core/timezones/', { signal }))).timezones;
	return withText(all, text).map((value) => ({ value, label: value }));
}
