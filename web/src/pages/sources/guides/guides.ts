// Guide sources: forms, what they send, and the progress of refreshes.

import type { Schemas } from '$lib/api';

export type Guide = Schemas['EPGSource'];
export type GuideWay = 'url' | 'file' | 'panel' | 'schedules_direct' | 'dummy';

/** Uploads beyond this size are refused by the gateway, in bytes. */
export const FILE_BYTES_MAX = 512 * 1024 * 1024;

/** Hours between two refreshes of a new guide with an address. */
export const INTERVAL_HOURS = 24;

/** The values of the form of a guide. */
export interface GuideValues {
	name: string;
	is_active: boolean;
	url: string;
	username: string;
	password: string;
	refresh_interval: number;
	cron_expression: string;
	priority: number;
	history_days: number;
	/** Time zone of times that state none; `null`: UTC. */
	default_time_zone: string | null;
	/** Minutes by which programmes are later than the guide says. */
	offset_minutes: number | null;
}

export const EMPTY_GUIDE: GuideValues = {
	name: '',
	is_active: true,
	url: '',
	username: '',
	password: '',
	refresh_interval: INTERVAL_HOURS,
	cron_expression: '',
	priority: 0,
	history_days: 7,
	default_time_zone: null,
	offset_minutes: 0,
};

export const valuesOf = (guide: Guide): GuideValues => ({
	name: guide.name,
	is_active: guide.is_active,
	url: guide.url ?? '',
	username: guide.username ?? '',
	password: '',
	refresh_interval: guide.refresh_interval,
	cron_expression: guide.cron_expression,
	priority: guide.priority,
	history_days: guide.history_days,
	default_time_zone: guide.default_time_zone,
	offset_minutes: guide.offset_minutes,
});

/** Returns the body of the request from the changed values. A password that was left empty stays, and no offset is 0. */
export function bodyOf({ password, offset_minutes, ...body }: Partial<GuideValues>) {
	return {
		...body,
		...(password ? { password } : {}),
		...(offset_minutes === undefined ? {} : { offset_minutes: offset_minutes ?? 0 }),
	};
}

/** Guides of these kinds have times that may state no time zone. */
export const hasTimeZone = (guide: Pick<Guide, 'source_type'>): boolean =>
	['xmltv', 'panel'].includes(guide.source_type);

/** Guides of the other kinds have no times of their own. */
export const hasOffset = (guide: Pick<Guide, 'source_type'>): boolean =>
	!['dummy', 'written'].includes(guide.source_type);

/** Name of a guide to which the admin gave none: the host of its address, or the file without its ending. */
export function nameFor(url: string, file: File | null): string {
	if (file) return file.name.replace(/\.(xml|xmltv|txt)?(\.(gz|xz|zip))?$/i, '');
	try {
		return new URL(url.trim()).hostname;
	} catch {
		return '';
	}
}

/** Guides that are never refreshed because that was the default of an earlier version: the admin is asked about them. */
export const unscheduled = (guides: readonly Guide[]): Guide[] => guides.filter((it) => it.needs_interval);

/** What a refresh reports while it runs. */
export interface GuideProgress {
	status: 'fetching' | 'parsing' | 'success' | 'error';
	/** From 0 to 1. */
	share: number;
	programmes: number;
	message: string;
}

const STATUSES = ['fetching', 'parsing', 'success', 'error'] as const;

/** Reads a frame `epg_refresh`; `null` for one of another guide, or one that this page does not understand. */
export function progressOf(frame: Readonly<Record<string, unknown>>, guide: number): GuideProgress | null {
	const status = STATUSES.find((it) => it === frame.status);
	if (frame.source !== guide || status === undefined) return null;
	const numberOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
	return {
		status,
		share: Math.min(1, Math.max(0, numberOf(frame.progress) / 100)),
		programmes: numberOf(frame.programs),
		message: typeof frame.message === 'string' ? frame.message : '',
	};
}

/** Guides of these kinds are fetched; the others are computed, written or found in streams. */
export const isFetched = (guide: Pick<Guide, 'source_type'>): boolean =>
	['xmltv', 'panel', 'schedules_direct'].includes(guide.source_type);

export const SHAPES = {
	idle: 'idle',
	fetching: 'opening',
	parsing: 'opening',
	error: 'failed',
	success: 'playing',
	disabled: 'stopped',
} as const;

/** Returns the shape and the word for the state of a guide. Those that are not fetched are never behind. */
export function stateOf(guide: Pick<Guide, 'source_type' | 'status'>): {
	shape: (typeof SHAPES)[keyof typeof SHAPES];
	word: keyof typeof SHAPES | 'current';
} {
	if (guide.status === 'idle' && !isFetched(guide)) return { shape: 'playing', word: 'current' };
	return { shape: SHAPES[guide.status], word: guide.status };
}
