// The values of a channel in its editor, and where they come from.

import type { Schemas } from '$lib/api';
import type { ChannelRow } from './filters';

/** Values of the form. */
export interface ChannelValues {
	name: string;
	channel_number: number | null;
	channel_group_id: number | null;
	tvg_id: string;
	epg_data_id: number | null;
	logo_url: string;
	stream_profile_id: number | null;
	user_level: 0 | 1 | 10;
	enabled: boolean;
	is_adult: boolean;
	healthiest_first: boolean;
	/** When its past is kept; `null` leaves it to the settings. */
	timeshift: TimeShift | null;
}

export const TIME_SHIFTS = ['off', 'watched', 'always'] as const;
export type TimeShift = (typeof TIME_SHIFTS)[number];

export function valuesOf(channel: ChannelRow): ChannelValues {
	return {
		name: channel.name,
		channel_number: channel.channel_number,
		channel_group_id: channel.channel_group_id,
		tvg_id: channel.tvg_id ?? '',
		epg_data_id: channel.epg_data_id,
		logo_url: channel.logo_url ?? '',
		stream_profile_id: channel.stream_profile_id,
		user_level: channel.user_level,
		enabled: channel.enabled,
		is_adult: channel.is_adult,
		healthiest_first: channel.healthiest_first,
		timeshift: channel.timeshift,
	};
}

export const NEW_CHANNEL: ChannelValues = {
	name: '',
	channel_number: null,
	channel_group_id: null,
	tvg_id: '',
	epg_data_id: null,
	logo_url: '',
	stream_profile_id: null,
	user_level: 0,
	enabled: true,
	is_adult: false,
	healthiest_first: false,
	timeshift: null,
};

/** Names of fields as `override` spells them. */
const OVERRIDDEN: Partial<Record<keyof ChannelValues, string>> = {
	name: 'name',
	channel_number: 'channel_number',
	channel_group_id: 'channel_group_id',
	tvg_id: 'tvg_id',
	epg_data_id: 'epg_data_id',
	logo_url: 'logo_id',
	stream_profile_id: 'stream_profile_id',
};

/** Where a value comes from: typed in, or from the provider and its rules at every refresh. */
export type Origin = 'manual' | 'provider';

/** Returns where the value of a field comes from; `null` for fields that no refresh sets. */
export function originOf(channel: ChannelRow, field: keyof ChannelValues): Origin | null {
	if (!channel.auto_created || OVERRIDDEN[field] === undefined) return null;
	return channel.edited_fields.includes(field) ? 'manual' : 'provider';
}

/** Returns the body that gives a field the value of the provider back, and lets it follow again. */
export function resetBody(field: keyof ChannelValues): {
	override: NonNullable<Schemas['PatchedChannelEditRequest']['override']>;
} {
	return { override: { [OVERRIDDEN[field] ?? field]: null } };
}
