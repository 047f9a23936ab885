import { expect, test } from 'vitest';
import {
	chosenDays,
	hasConditions,
	isEmpty,
	isOfOneSeries,
	programmeBody,
	programmeValues,
	shortTime,
	type ProgrammeRule,
} from './rules';

const rule: ProgrammeRule = {
	id: 3,
	tvg_id: 'news.example',
	mode: 'new',
	title: 'Evening',
	title_mode: 'contains',
	description: '',
	description_mode: 'contains',
	channel_id: 7,
	channel_ids: [],
	channel_group_ids: [],
	days_of_week: [],
	start_after: null,
	start_before: null,
	time_zone: null,
	season_from: null,
	min_minutes: null,
	max_minutes: null,
	quality: 'any',
	skip_library: false,
	keep: 5,
	quota_bytes: 1024 ** 3,
	padding_before: 90,
	padding_after: null,
	priority: 60,
	enabled: false,
};

test('the form of a rule sends the rule as it was', () => {
	expect(programmeBody(programmeValues(rule, {}))).toEqual({
		title: 'Evening',
		title_mode: 'contains',
		tvg_id: 'news.example',
		mode: 'new',
		channel_id: 7,
		keep: 5,
		quota_bytes: 1024 ** 3,
		padding_before: 90,
		priority: 60,
		enabled: false,
	});
});

test('conditions of a rule stay as they are when it is saved', () => {
	const conditions = {
		mode: 'marked_new',
		channel_ids: [4, 2],
		channel_group_ids: [9],
		days_of_week: [0, 6],
		start_after: '20:15:00',
		start_before: '00:00:00',
		time_zone: 'Europe/Berlin',
		season_from: 0,
		min_minutes: 20,
		max_minutes: 90,
		quality: 'hd',
		skip_library: true,
		padding_after: -60,
	} as const;
	const narrow: ProgrammeRule = {
		...rule,
		...conditions,
		channel_ids: [...conditions.channel_ids],
		channel_group_ids: [...conditions.channel_group_ids],
		days_of_week: [...conditions.days_of_week],
	};
	const values = programmeValues(narrow, {});
	expect(programmeBody(values)).toMatchObject({
		...conditions,
		start_after: '20:15',
		start_before: '00:00',
	});
	expect([hasConditions(values), hasConditions(programmeValues(rule, {}))]).toEqual([true, false]);
});

test('a new rule has what the guide says, and nothing that is not filled in', () => {
	const values = programmeValues(undefined, { title: ' Evening ' });
	expect(programmeBody(values)).toEqual({
		title: 'Evening',
		title_mode: 'exact',
		mode: 'all',
		keep: 0,
		quota_bytes: 0,
		priority: 50,
		enabled: true,
	});
	expect(isEmpty(values)).toBe(false);
	expect(isEmpty(programmeValues(undefined, { title: ' ', tvg_id: 'news' }))).toBe(true);
});

test('a weekly rule without a chosen day is one for every day', () => {
	expect([chosenDays([]), chosenDays([6, 0])]).toEqual([
		[0, 1, 2, 3, 4, 5, 6],
		[6, 0],
	]);
});

test('times are shown to the minute', () => {
	expect([shortTime('20:15:00'), shortTime(null)]).toEqual(['20:15', '']);
});

test.each([
	[{ title: 'Show', title_mode: 'exact', tvg_id: 'news' }, true],
	[{ title: '', title_mode: 'contains', tvg_id: 'news' }, true],
	[{ title: 'Show', title_mode: 'contains', tvg_id: 'news' }, false],
	[{ title: 'Show', title_mode: 'exact', tvg_id: '' }, false],
	[{ title: 'Show', title_mode: 'exact', tvg_id: 'news', description: 'part' }, false],
] as const)('the upcoming recordings of %o can be named: %s', (changed, expected) => {
	expect(isOfOneSeries({ ...rule, ...changed })).toBe(expected);
});
