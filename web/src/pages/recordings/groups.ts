// Recordings as cards: those of a series together.

import { api, ok } from '$lib/api';
import { hasConflict, isOver, PARTS, type Part, type Recording } from './recordings';

/** Recordings that cards show; the list shows all. */
export const CARDS_MAX = 1_000;
const PAGE = 100;
/** Days for which a recording is marked as new. */
const NEW_DAYS = 3;
const DAY_MS = 86_400_000;

/** Recordings with one title, in the order of the list. */
export interface Group {
	title: string;
	recordings: Recording[];
}

/** Reads the recordings of a part, at most as many as cards show, and how many there are. */
export async function readPart(
	part: Part,
	search: string,
	signal: AbortSignal,
): Promise<{ count: number; recordings: Recording[] }> {
	const ordering = part === 'done' ? ('-start_time' as const) : ('start_time' as const);
	const all = new Map<number, Recording>();
	let count = 0;
	for (let page = 1; page <= CARDS_MAX / PAGE; page += 1) {
		const query = { status: [...PARTS[part]], search, ordering, page, page_size: PAGE };
		const answer = await ok(api.GET('/api/channels/recordings/', { params: { query }, signal }));
		// A recording that begins meanwhile moves the others, so that one may come twice.
		for (const it of answer.results) all.set(it.id, it);
		count = answer.count;
		if (page * PAGE >= count || answer.results.length === 0) break;
	}
	return { count, recordings: [...all.values()] };
}

/** Groups recordings by their titles, regardless of case. A group is where its first recording is. */
export function groupsOf(recordings: readonly Recording[]): Group[] {
	const groups = new Map<string, Group>();
	for (const it of recordings) {
		const key = it.title.trim().toLowerCase();
		const group = groups.get(key);
		if (group) group.recordings.push(it);
		else groups.set(key, { title: it.title, recordings: [it] });
	}
	return [...groups.values()];
}

/** How a recording is, at a glance. */
export type Glance =
	'running' | 'failed' | 'interrupted' | 'conflict' | 'unavailable' | 'new' | 'planned' | 'done';

export function glanceOf(it: Recording, now: number): Glance {
	if (it.status === 'recording') return 'running';
	if (it.status === 'failed' || it.status === 'interrupted') return it.status;
	if (!isOver(it)) return hasConflict(it) ? 'conflict' : 'planned';
	if (it.file_url !== null && !it.is_available) return 'unavailable';
	return it.ended_at !== null && now - Date.parse(it.ended_at) < NEW_DAYS * DAY_MS ? 'new' : 'done';
}

/** What of a group needs to be seen first. */
const ORDER: readonly Glance[] = [
	'running',
	'failed',
	'interrupted',
	'conflict',
	'unavailable',
	'new',
	'planned',
	'done',
];

export const glanceOfGroup = ({ recordings }: Group, now: number): Glance =>
	ORDER.find((glance) => recordings.some((it) => glanceOf(it, now) === glance)) ?? 'done';

/** Returns the recording whose picture stands for a group: the first that has one. */
export const faceOf = ({ recordings }: Group): Recording =>
	recordings.find((it) => it.artwork?.url) ?? recordings[0]!;
