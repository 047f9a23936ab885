// The past of channels, from the archives of their providers.

import { api, ok } from '$lib/api';
import { playerAddresses, savePlaylistOf, type Playable } from '../library/playable';
import { pathOf } from '../library/file';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Longest part of the past that one address plays, in minutes. */
const MINUTES_MAX = 480;

/** A part of the past; times in milliseconds since 1970. */
export interface Part {
	start: number;
	end: number;
	/** Whether what was broadcast after it follows, and at last the live channel. */
	goesOn: boolean;
}

/** A programme as far as its times matter. */
export interface Times {
	start_time: string;
	end_time: string;
}

/** A channel as far as its past matters. */
export interface ArchiveChannel {
	id: number;
	uuid: string;
	name: string;
	catchup_days: number;
}

/** Length of the past that a channel can be played from, in milliseconds. */
export const reachMsOf = (channel: Pick<ArchiveChannel, 'catchup_days'>): number =>
	Math.max(0, channel.catchup_days) * DAY_MS;

/** Whether a programme has begun, and how much of the archive of its channel is left at its start. */
export type Reach = 'past' | 'running' | null;

/** Returns whether a programme can be played from an archive that reaches back so far, in milliseconds. */
export function reachOf(reachMs: number, it: Times, now: number): Reach {
	const [start, end] = [Date.parse(it.start_time), Date.parse(it.end_time)];
	if (reachMs <= 0 || start >= now || start < now - reachMs) return null;
	return end <= now ? 'past' : 'running';
}

/** Returns the part of the past that an address names. */
export function partOf(query: URLSearchParams): Part | null {
	const [start, end] = ['start', 'end'].map((name) => {
		const text = query.get(name) ?? '';
		return /^\d{1,12}$/.test(text) ? Number(text) * 1000 : null;
	});
	if (start == null || end == null || end <= start) return null;
	return { start, end, goesOn: query.get('then') === 'live' };
}

/** Returns the query that names a part of the past. */
export const queryOf = (it: Part) => ({
	start: Math.floor(it.start / 1000),
	end: Math.ceil(it.end / 1000),
	then: it.goesOn ? 'live' : null,
});

/** Returns the path of the page that plays a programme of the past, or one that runs from its start. */
export function hrefOf(uuid: string, it: Times, reach: Exclude<Reach, null>): string {
	const query = new URLSearchParams({
		start: String(Math.floor(Date.parse(it.start_time) / 1000)),
		end: String(Math.ceil(Date.parse(it.end_time) / 1000)),
		...(reach === 'running' ? { then: 'live' } : {}),
	});
	return `/watch/${uuid}?${query}`;
}

/** What is broadcast later than this many milliseconds ago is played live. */
export const LIVE_MS = 15_000;
/** Time after now that a part contains which goes on into the live channel, in milliseconds. */
const AHEAD_MS = 60 * MINUTE_MS;

/** Returns the part from a time on, which goes on into the live channel; `null` if only that is left. */
export const partFrom = (at: number, now: number): Part | null =>
	now - at < LIVE_MS ? null : { start: Math.floor(at / 1000) * 1000, end: now + AHEAD_MS, goesOn: true };

/** Returns the path of the page that plays a channel from a time on. */
export function hrefFrom(uuid: string, at: number, now: number): string {
	const part = partFrom(at, now);
	if (part === null) return `/watch/${uuid}`;
	const { start, end } = queryOf(part);
	return `/watch/${uuid}?${new URLSearchParams({ start: String(start), end: String(end), then: 'live' })}`;
}

/** Shortest past that the time bar shows, and longest, in milliseconds. */
const BAR_MIN_MS = 60 * MINUTE_MS;
const BAR_MAX_MS = 12 * 60 * MINUTE_MS;

/** Returns the first time of the time bar: the start of the programme that runs, if the archive has it. */
export function barStart(reachMs: number, running: number | null, at: number, now: number): number {
	const wanted = Math.min(now - BAR_MIN_MS, at, running ?? now);
	return Math.max(wanted, now - reachMs, now - BAR_MAX_MS);
}

/** Returns how many minutes of a part are asked for. */
export const minutesOf = (it: Part): number =>
	Math.min(MINUTES_MAX, Math.max(1, Math.ceil((it.end - it.start) / MINUTE_MS)));

/**
 * Returns the part that follows one that has been played to its end; `null` if only the live channel follows. A part that
 * ends later than now is followed by the live channel in the same answer.
 */
export function nextPart(it: Part, now: number): Part | null {
	const start = it.start + minutesOf(it) * MINUTE_MS;
	return now - start < MINUTE_MS ? null : { start, end: now + AHEAD_MS, goesOn: true };
}

/**
 * This page as a player: all parts of a channel continue one session, so that another part uses the connection of the one
 * before.
 */
const SESSION = Array.from(crypto.getRandomValues(new Uint8Array(16)), (it) =>
	it.toString(16).padStart(2, '0'),
).join('');

/** Returns what plays a part of the past of a channel. */
export function playablePast(channel: ArchiveChannel, part: Part): Playable {
	const minutes = minutesOf(part);
	const start = new Date(part.start).toISOString();
	return {
		name: channel.name,
		path: async () => {
			const body = { channel_uuid: channel.uuid, start, duration: minutes };
			const made = await ok(api.POST('/api/catchup/sessions/', { body }));
			return pathOf(made.playback_url, { session_id: SESSION });
		},
		save: async () => {
			const { server, user, password } = await playerAddresses();
			// `2026-01-31:18-30`, as player apps write it.
			const at = start
				.slice(0, 16)
				.replace('T', ':')
				.replace(/:(\d\d)$/, '-$1');
			savePlaylistOf(
				channel.name,
				`${server}/timeshift/${user}/${password}/${minutes}/${at}/${channel.id}.ts`,
			);
		},
	};
}
