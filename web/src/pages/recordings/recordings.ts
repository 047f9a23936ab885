// Recordings as the pages show them.

import { api, ok, type Schemas } from '$lib/api';
import { session } from '$lib/auth';
import { common, dateTime } from '$lib/i18n';
import { base } from '$lib/router';
import { toast } from '$lib/ui';
import { ruleText } from './ruleText';

export type Recording = Schemas['Recording'];
export type Forecasted = Schemas['ForecastedRecording'];
/** Another showing of an episode that could be recorded. */
export type Showing = NonNullable<Forecasted['alternative']>;
export type Status = Recording['status'];

/** Parts of the list, with the statuses of each. */
export const PARTS = {
	upcoming: ['scheduled'],
	running: ['recording'],
	done: ['completed', 'stopped', 'interrupted', 'failed'],
} as const satisfies Record<string, readonly Status[]>;

export type Part = keyof typeof PARTS;

export const partOf = (name: string | null): Part =>
	name !== null && Object.hasOwn(PARTS, name) ? (name as Part) : 'upcoming';

/** Tones of the statuses. */
export const TONES: Record<Status, 'neutral' | 'info' | 'good' | 'warn' | 'bad'> = {
	scheduled: 'neutral',
	recording: 'info',
	completed: 'good',
	stopped: 'neutral',
	interrupted: 'warn',
	failed: 'bad',
};

export const isOver = (it: Pick<Recording, 'status'>): boolean =>
	it.status !== 'scheduled' && it.status !== 'recording';

/** Whether a recording will have no connection, or not for all of its padding. */
export const hasConflict = (it: Pick<Recording, 'forecast'>): boolean =>
	it.forecast !== null && it.forecast !== 'assigned';

/** Whether no connection will be free for a recording. */
export const isLost = (it: Pick<Forecasted, 'forecast'>): boolean =>
	it.forecast === 'lost' || it.forecast === 'no_source';

/** Milliseconds since 1970 between which is recorded, with padding. */
export function spanOf(
	it: Pick<Recording, 'start_time' | 'end_time' | 'padding_before' | 'padding_after'>,
): [number, number] {
	return [
		Date.parse(it.start_time) - it.padding_before * 1000,
		Date.parse(it.end_time) + it.padding_after * 1000,
	];
}

/** Returns how much of the time of a recording is over, from 0 to 1. */
export function fractionOf(it: Parameters<typeof spanOf>[0], now: number): number {
	const [begin, end] = spanOf(it);
	return end <= begin ? 1 : Math.min(1, Math.max(0, (now - begin) / (end - begin)));
}

/** Returns the seconds of a recorded file, or those that are planned. */
export function secondsOf(it: Recording): number {
	const [begin, end] = spanOf(it);
	const from = it.started_at === null ? begin : Date.parse(it.started_at);
	const until = it.ended_at === null ? end : Date.parse(it.ended_at);
	return Math.max(0, until - from) / 1000;
}

/** Returns the sizes in a frame that reports the progress of recordings, by id. */
export function sizesOf(frame: Record<string, unknown>): Map<number, number> {
	const all = Array.isArray(frame.recordings) ? (frame.recordings as Record<string, unknown>[]) : [];
	return new Map(all.map((it) => [Number(it.recording_id), Number(it.bytes_written)]));
}

/** Returns the name of a file without its folders. */
export const nameOfFile = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** A file of a recording: all of it, or the copy without commercials. */
export type FileKind = 'file' | 'cut';

/** Returns a fresh path of a file; it contains a token that expires. */
export async function filePath(it: Pick<Recording, 'id'>, kind: FileKind): Promise<string> {
	const query = new URLSearchParams({ token: (await session.token()) ?? '' });
	if (kind === 'cut') query.set('cut', 'true');
	return `${base}/api/channels/recordings/${it.id}/file/?${query}`;
}

/** Lets the browser save a file while it reads it; it may be larger than the memory. */
export async function saveRecording(it: Recording, kind: FileKind): Promise<void> {
	const name = kind === 'cut' ? it.cut?.file_name : it.file_name;
	const link = document.createElement('a');
	link.href = await filePath(it, kind);
	link.download = nameOfFile(name ?? `${it.id}.ts`);
	link.click();
}

/** Records a programme of the guide. */
export const recordProgramme = (channel_id: number, program_id: string): Promise<Recording> =>
	ok(api.POST('/api/channels/recordings/', { body: { channel_id, program_id } }));

/** Finds the recording that is made, or will be made, of a programme on a channel; of a past one also one that is over. */
export async function findRecording(
	channel_id: number,
	program_id: string,
	isPast: boolean,
	signal: AbortSignal,
): Promise<Recording | null> {
	const over: Status[] = isPast ? ['completed', 'stopped', 'interrupted'] : [];
	const status: Status[] = ['scheduled', 'recording', ...over];
	// The newest one first.
	const query = { channel_id, status, ordering: '-start_time' as const };
	const found = await ok(api.GET('/api/channels/recordings/', { params: { query }, signal }));
	return found.results.find((it) => String(it.program_id) === program_id) ?? null;
}

/** What a recording says about its programme. */
export interface Details {
	title: string;
	sub_title: string;
	description: string;
	season: number | null;
	episode: number | null;
}

/** Returns what a recording says about its programme. */
export function detailsOf(it: Pick<Recording, 'title' | 'custom_properties'>): Details {
	const program = (it.custom_properties?.program ?? {}) as Record<string, unknown>;
	const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
	const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);
	return {
		title: it.title,
		sub_title: textOf(program.sub_title),
		description: textOf(program.description),
		season: numberOf(program.season),
		episode: numberOf(program.episode),
	};
}

/** Returns season, number and title of an episode, as far as they are known. */
export const episodeText = (it: {
	season: number | null;
	episode: number | null;
	sub_title: string | null;
}): string =>
	[it.season === null ? '' : `S${it.season}`, it.episode === null ? '' : `E${it.episode}`, it.sub_title]
		.filter(Boolean)
		.join(' ');

/** Returns what changes the details. A number that was removed stays, because the interface cannot forget it. */
export function detailsBody({ season, episode, ...texts }: Partial<Details>) {
	return {
		...texts,
		...(typeof season === 'number' ? { season } : {}),
		...(typeof episode === 'number' ? { episode } : {}),
	};
}

export const readForecast = (signal?: AbortSignal): Promise<Schemas['RecordingForecast']> =>
	ok(api.GET('/api/channels/recordings/forecast/', { signal }));

/** Returns what moves a recording to a showing. */
export function bodyOfShowing(it: Showing) {
	const { channel_id, program_id, start_time, end_time } = it;
	return { channel_id, start_time, end_time, ...(program_id === null ? {} : { program_id }) };
}

/** Seconds for which the way back is offered. */
export const UNDO_SECONDS = 15;

/** Moves a recording to another showing of its episode, and offers the way back. */
export async function takeShowing(
	{ recording_id: id }: Pick<Forecasted, 'recording_id'>,
	showing: Showing,
	onmoved: (moved: Recording) => void,
): Promise<void> {
	const params = { path: { id } };
	const before = await ok(api.GET('/api/channels/recordings/{id}/', { params }));
	const move = async (to: Showing): Promise<void> =>
		onmoved(await ok(api.PATCH('/api/channels/recordings/{id}/', { params, body: bodyOfShowing(to) })));
	await move(showing);
	toast(ruleText().conflict.taken(dateTime(showing.start_time)), {
		tone: 'good',
		seconds: UNDO_SECONDS,
		action: { label: common().undo, run: () => move(before) },
	});
}
