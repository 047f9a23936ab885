// The values of the form of a user, and what it sends.

import type { Schemas } from '$lib/api';
import { OUTPUT_FORMATS, outputFormatsOf, type OutputFormat } from '../common/outputFormats';
import { hoursBody, hoursOf, type HoursTable } from './hours';

export type User = Schemas['UserAccount'];
type Level = User['user_level'];

export interface UserValues {
	username: string;
	email: string;
	password: string;
	current_password: string;
	user_level: Level;
	is_active: boolean;
	/** The day on which the account ends; empty for no end. */
	exp_date: string;
	stream_limit: number | null;
	channel_profiles: number[];
	/** Groups whose channels the user sees; empty for all. */
	channel_group_ids: number[];
	/** When the user may watch; `null` for always. */
	allowed_hours: HoursTable | null;
	xc_password: string;
	hide_adult_content: boolean;
	catchup_enabled: boolean;
	/** Formats that the user may play, the preferred one first. */
	output_formats: OutputFormat[];
	/** Whether the user may record: as the settings say, or not. */
	recordings: 'settings' | 'on' | 'off';
	/** How much the recordings may take, in GiB; `null` for as much as the settings say. */
	recording_quota: number | null;
}

const GIB = 1024 ** 3;

export const NEW_USER: UserValues = {
	username: '',
	email: '',
	password: '',
	current_password: '',
	user_level: 0,
	is_active: true,
	exp_date: '',
	stream_limit: 0,
	channel_profiles: [],
	channel_group_ids: [],
	allowed_hours: null,
	xc_password: '',
	hide_adult_content: false,
	catchup_enabled: true,
	output_formats: [...OUTPUT_FORMATS],
	recordings: 'settings',
	recording_quota: null,
};

export function valuesOf(user: User): UserValues {
	const custom = user.custom_properties as Record<string, unknown>;
	return {
		username: user.username,
		email: user.email,
		password: '',
		current_password: '',
		user_level: user.user_level,
		is_active: user.is_active,
		exp_date: (user.exp_date ?? '').slice(0, 10),
		stream_limit: user.stream_limit,
		channel_profiles: user.channel_profiles,
		channel_group_ids: user.channel_group_ids,
		allowed_hours: hoursOf(user.allowed_hours),
		xc_password: typeof custom.xc_password === 'string' ? custom.xc_password : '',
		hide_adult_content: custom.hide_adult_content === true,
		catchup_enabled: custom.catchup_enabled !== false,
		output_formats: outputFormatsOf(custom.output_formats),
		recordings:
			typeof custom.recordings_enabled !== 'boolean' ? 'settings' : custom.recordings_enabled ? 'on' : 'off',
		recording_quota:
			typeof custom.recording_quota_bytes === 'number'
				? Math.round((custom.recording_quota_bytes / GIB) * 1000) / 1000
				: null,
	};
}

/** Returns the body of the request from the changed values. Empty passwords stay as they are. */
export function bodyOf(changed: Partial<UserValues>): Record<string, unknown> {
	const { xc_password, hide_adult_content, catchup_enabled, output_formats, allowed_hours, ...more } =
		changed;
	const { recordings, recording_quota, password, current_password, stream_limit, exp_date, ...same } = more;
	const body: Record<string, unknown> = { ...same };
	if (password) body.password = password;
	if (current_password) body.current_password = current_password;
	if (exp_date !== undefined) body.exp_date = exp_date === '' ? null : `${exp_date}T00:00:00Z`;
	if (stream_limit !== undefined) body.stream_limit = stream_limit ?? 0;
	if (allowed_hours !== undefined) body.allowed_hours = hoursBody(allowed_hours);
	const custom: Record<string, unknown> = {};
	if (xc_password !== undefined) custom.xc_password = xc_password === '' ? null : xc_password;
	if (hide_adult_content !== undefined) custom.hide_adult_content = hide_adult_content;
	if (catchup_enabled !== undefined) custom.catchup_enabled = catchup_enabled;
	// Without the property, the formats are all that the gateway has, also those of later versions.
	if (output_formats !== undefined) custom.output_formats = isEvery(output_formats) ? null : output_formats;
	if (recordings !== undefined)
		custom.recordings_enabled = recordings === 'settings' ? null : recordings === 'on';
	if (recording_quota !== undefined)
		custom.recording_quota_bytes = recording_quota === null ? null : Math.round(recording_quota * GIB);
	if (Object.keys(custom).length > 0) body.custom_properties = custom;
	return body;
}

/**
 * Returns the groups to choose from: those of the user, also deleted ones, and those whose names contain the text, by name.
 */
export function shownGroups(
	groups: readonly { id: number; name: string }[],
	chosen: readonly number[],
	search: string,
	deleted: (id: number) => string,
): { id: number; name: string }[] {
	const wanted = search.trim().toLowerCase();
	const isShown = (it: { id: number; name: string }): boolean =>
		chosen.includes(it.id) || it.name.toLowerCase().includes(wanted);
	const lost = chosen.filter((id) => !groups.some((it) => it.id === id));
	return [
		...lost.map((id) => ({ id, name: deleted(id) })),
		...groups.filter(isShown).toSorted((a, b) => a.name.localeCompare(b.name)),
	];
}

const isEvery = (formats: OutputFormat[]): boolean => formats.join() === OUTPUT_FORMATS.join();

/** Returns the formats with another one allowed or not; at least one stays. */
export function withFormat(formats: OutputFormat[], format: OutputFormat, isOn: boolean): OutputFormat[] {
	const others = formats.filter((it) => it !== format);
	if (!isOn) return others.length > 0 ? others : formats;
	const [preferred = format] = formats;
	return preferredFirst([...others, format], preferred);
}

/** Returns the formats with the preferred one first, and the others in their usual order. */
export function preferredFirst(formats: OutputFormat[], preferred: OutputFormat): OutputFormat[] {
	return [preferred, ...OUTPUT_FORMATS.filter((it) => it !== preferred && formats.includes(it))];
}

/** Characters of a player password that are typed with the remote control of a television: none look alike. */
const CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const LENGTH = 12;

/** Returns a random player password. */
export function newPlayerPassword(): string {
	// 256 is a multiple of 32, so that all characters are equally likely.
	return [...crypto.getRandomValues(new Uint8Array(LENGTH))]
		.map((it) => CHARACTERS[it % CHARACTERS.length])
		.join('');
}
