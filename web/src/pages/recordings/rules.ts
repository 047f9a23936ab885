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
	is_new_only: boolean;
	channel_id: number | null;
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
		is_new_only: rule?.mode === 'new',
		channel_id: rule?.channel_id ?? null,
		keep: rule?.keep ?? 0,
		quota: inGib(rule?.quota_bytes ?? 0),
		padding_before: minutes(rule?.padding_before ?? null),
		padding_after: minutes(rule?.padding_after ?? null),
		priority: rule?.priority ?? 50,
		enabled: rule?.enabled ?? true,
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
		mode: values.is_new_only ? ('new' as const) : ('all' as const),
		...(channel_id === null ? {} : { channel_id }),
		...(keep === null ? {} : { keep }),
		quota_bytes: fromGib(values.quota),
		...(priority === null ? {} : { priority }),
		...secondsIn({ padding_before, padding_after }),
		enabled,
	};
}

/** Whether a rule for programmes lacks the text that it needs. */
export const isEmpty = (values: ProgrammeValues): boolean =>
	!values.title.trim() && !values.description.trim();

export const readProgrammeRules = async (signal?: AbortSignal): Promise<ProgrammeRule[]> =>
	(await ok(api.GET('/api/channels/series-rules/', { signal }))).rules;

export const readWeeklyRules = async (signal?: AbortSignal): Promise<WeeklyRule[]> =>
	(await ok(api.GET('/api/channels/recurring-rules/', { signal }))).results;

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
	const body = { ...programmeBody(programmeValues(rule, {})), quota_bytes: rule.quota_bytes };
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
