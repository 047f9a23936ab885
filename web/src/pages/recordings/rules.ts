// Rules that make recordings, as the pages show them.

import { api, ok, type Schemas } from '$lib/api';
import { secondsIn } from './form';
import { fromGib, inGib } from './storage';

/** A rule for programmes of the guide. */
export type ProgrammeRule = Schemas['SeriesRule'];
/** A rule for times of the week, or one that another program made for programmes. */
export type WeeklyRule = Schemas['RecurringRule'];
/** A coming programme that a rule selects. */
export type MatchedProgram = Schemas['MatchedProgram'];
export type Mark = MatchedProgram['mark'];
export type MarkReason = NonNullable<MatchedProgram['reason']>;

/** Tones of the marks of programmes. */
export const MARK_TONES: Record<Mark, 'neutral' | 'info' | 'good' | 'warn'> = {
	scheduled: 'good',
	alternative: 'info',
	recorded: 'neutral',
	not_new: 'neutral',
	skipped: 'warn',
};

export const EPISODE_MODES = ['all', 'new', 'marked_new', 'unseen'] as const;
export const QUALITIES = ['any', 'hd', 'uhd', 'sd'] as const;
export const TEXT_MODES = ['exact', 'contains', 'search', 'regex'] as const;
type TextMode = (typeof TEXT_MODES)[number];

/** Values of the form of a rule for programmes. */
export interface ProgrammeValues {
	title: string;
	title_mode: TextMode;
	tvg_id: string;
	description: string;
	/** The form has no field for it; it stays as it is. */
	description_mode: TextMode;
	mode: (typeof EPISODE_MODES)[number];
	channel_id: number | null;
	channel_ids: number[];
	channel_group_ids: number[];
	days_of_week: number[];
	/** Times of the day, to the minute. */
	start_after: string;
	start_before: string;
	time_zone: string;
	season_from: number | null;
	min_minutes: number | null;
	max_minutes: number | null;
	quality: (typeof QUALITIES)[number];
	skip_library: boolean;
	keep: number | null;
	/** Size of all recordings of the rule, in GiB. */
	quota: number | null;
	padding_before: number | null;
	padding_after: number | null;
	priority: number | null;
	enabled: boolean;
}

/** Returns seconds of the API in the minutes of a form. */
export const minutes = (seconds: number | null): number | null => (seconds === null ? null : seconds / 60);

/** Returns the values of a form for a rule, or for a new one with a title and a channel of the guide. */
export function programmeValues(
	rule: ProgrammeRule | undefined,
	fresh: { title?: string; tvg_id?: string },
): ProgrammeValues {
	return {
		title: rule?.title ?? fresh.title ?? '',
		title_mode: rule?.title_mode ?? 'exact',
		tvg_id: rule?.tvg_id ?? fresh.tvg_id ?? '',
		description: rule?.description ?? '',
		description_mode: rule?.description_mode ?? 'contains',
		mode: rule?.mode ?? 'all',
		channel_id: rule?.channel_id ?? null,
		channel_ids: rule?.channel_ids ?? [],
		channel_group_ids: rule?.channel_group_ids ?? [],
		days_of_week: rule?.days_of_week ?? [],
		start_after: shortTime(rule?.start_after),
		start_before: shortTime(rule?.start_before),
		time_zone: rule?.time_zone ?? '',
		season_from: rule?.season_from ?? null,
		min_minutes: rule?.min_minutes ?? null,
		max_minutes: rule?.max_minutes ?? null,
		quality: rule?.quality ?? 'any',
		skip_library: rule?.skip_library ?? false,
		keep: rule?.keep ?? 0,
		quota: inGib(rule?.quota_bytes ?? 0),
		padding_before: minutes(rule?.padding_before ?? null),
		padding_after: minutes(rule?.padding_after ?? null),
		priority: rule?.priority ?? 50,
		enabled: rule?.enabled ?? true,
	};
}

/** Returns the members that are filled in. */
function filled<T extends object>(values: T): Partial<T> {
	const isFilled = (it: unknown): boolean =>
		Array.isArray(it) ? it.length > 0 : it !== null && it !== '' && it !== false;
	return Object.fromEntries(Object.entries(values).filter(([, it]) => isFilled(it))) as Partial<T>;
}

/** Returns the further conditions of a rule that a form sends. */
function conditionsOf(values: ProgrammeValues) {
	const { channel_ids, channel_group_ids, days_of_week, season_from, min_minutes, max_minutes } = values;
	const { quality, skip_library } = values;
	const [start_after, start_before, time_zone] = [
		values.start_after,
		values.start_before,
		values.time_zone,
	].map((it) => it.trim());
	return {
		...filled({ channel_ids, channel_group_ids, days_of_week, start_after, start_before, time_zone }),
		...filled({ season_from, min_minutes, max_minutes, skip_library }),
		...(quality === 'any' ? {} : { quality }),
	};
}

/** Returns what the form of a rule for programmes sends. What is empty is left out. */
export function programmeBody(values: ProgrammeValues) {
	const { title, title_mode, tvg_id, description, channel_id, keep, priority, enabled } = values;
	const { description_mode, padding_before, padding_after } = values;
	const [aTitle, aGuide, aDescription] = [title, tvg_id, description].map((it) => it.trim());
	return {
		...(aTitle ? { title: aTitle, title_mode } : {}),
		...(aGuide ? { tvg_id: aGuide } : {}),
		...(aDescription ? { description: aDescription, description_mode } : {}),
		mode: values.mode,
		...conditionsOf(values),
		...(channel_id === null ? {} : { channel_id }),
		...(keep === null ? {} : { keep }),
		quota_bytes: fromGib(values.quota),
		...(priority === null ? {} : { priority }),
		...secondsIn({ padding_before, padding_after }),
		enabled,
	};
}

/** Whether the form of a rule has more than a title and a channel. */
export const hasConditions = (values: ProgrammeValues): boolean =>
	Object.keys(conditionsOf(values)).length > 0;

/** Whether a rule for programmes lacks the text that it needs. */
export const isEmpty = (values: ProgrammeValues): boolean =>
	!values.title.trim() && !values.description.trim();

export const readProgrammeRules = async (signal?: AbortSignal): Promise<ProgrammeRule[]> =>
	(await ok(api.GET('/api/channels/series-rules/', { signal }))).rules;

export const readWeeklyRules = async (signal?: AbortSignal): Promise<WeeklyRule[]> =>
	(await ok(api.GET('/api/channels/recurring-rules/', { signal }))).results;

export const nameOfProgrammes = (it: ProgrammeRule): string => it.title || it.description || it.tvg_id;

export const nameOfWeekly = (it: WeeklyRule, unnamed: string): string =>
	it.name || it.title || it.tvg_id || unnamed;

/** Reads the names of all rules by their ids. */
export async function namesOfRules(signal: AbortSignal, unnamed: string): Promise<Map<number, string>> {
	const [programmes, weekly] = await Promise.all([readProgrammeRules(signal), readWeeklyRules(signal)]);
	return new Map([
		...programmes.map((it) => [it.id, nameOfProgrammes(it)] as const),
		...weekly.map((it) => [it.id, nameOfWeekly(it, unnamed)] as const),
	]);
}

export const deleteProgrammeRule = ({ tvg_id, title }: ProgrammeRule) =>
	ok(api.DELETE('/api/channels/series-rules/', { params: { query: { tvg_id, title } } }));

export const deleteWeeklyRule = ({ id }: WeeklyRule) =>
	ok(api.DELETE('/api/channels/recurring-rules/{id}/', { params: { path: { id } } }));

/** Whether a rule names one channel of the guide and a whole title, or no title. */
export const isOfOneSeries = (
	it: Pick<ProgrammeRule, 'tvg_id' | 'title' | 'title_mode' | 'description'>,
): boolean => it.tvg_id !== '' && !it.description && (it.title === '' || it.title_mode === 'exact');

/** Deletes the upcoming recordings of a rule of one series. */
export const removeRecordingsOf = ({ tvg_id, title }: ProgrammeRule) =>
	ok(
		api.POST('/api/channels/series-rules/bulk-remove/', {
			body: title ? { tvg_id, title, scope: 'title' } : { tvg_id, scope: 'channel' },
		}),
	);

/** Creates a deleted rule again, which goes on where that one ended. */
export async function restoreProgrammeRule(rule: ProgrammeRule): Promise<void> {
	// The form has no seconds and no bytes.
	const { start_after, start_before, quota_bytes } = rule;
	const exact = { ...filled({ start_after, start_before }), quota_bytes };
	const body = { ...programmeBody(programmeValues(rule, {})), ...exact };
	await ok(api.POST('/api/channels/series-rules/', { body }));
}

/** Creates a deleted rule again, which goes on where that one ended. */
export async function restoreWeeklyRule(rule: WeeklyRule): Promise<void> {
	const { id: _, owner: __, created_at: ___, updated_at: ____, ...body } = rule;
	await ok(api.POST('/api/channels/recurring-rules/', { body }));
}

/** Days of the week from Monday. */
const ALL_DAYS = [0, 1, 2, 3, 4, 5, 6];

/** Returns the days of a weekly rule that a form sends: without a chosen one, all. */
export const chosenDays = (days: readonly number[]): number[] => (days.length === 0 ? ALL_DAYS : [...days]);

/** Writes times of the API to the minute, as the form does. */
export const shortTime = (time: string | null | undefined): string => (time ?? '').slice(0, 5);
