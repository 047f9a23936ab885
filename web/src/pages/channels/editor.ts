// The values of a channel in its editor, and where they come from.

import { ApiError, type Schemas } from '$lib/api';
import type { ChannelRow } from './filters';

/** Values of the form. */
export interface ChannelValues {
	name: string;
	channel_number: number | null;
	channel_group_id: number | null;
	tvg_id: string;
	epg_data_id: number | null;
	/** Guide channels that fill what those before them lack, in order. */
	further_epg_data_ids: number[];
	/** Minutes by which programmes are later; `null` leaves it to the first stream. */
	epg_offset_minutes: number | null;
	epg_follows_stream: boolean;
	logo_url: string;
	stream_profile_id: number | null;
	user_level: 0 | 1 | 10;
	enabled: boolean;
	is_adult: boolean;
	healthiest_first: boolean;
	/** When its past is kept; `null` leaves it to the settings. */
	timeshift: TimeShift | null;
	/** When it is sent as datagrams. */
	udp_mode: UdpMode;
	udp_address: string;
	udp_interface: string;
	udp_ttl: number | null;
}

export const UDP_MODES = ['off', 'always', 'watched'] as const;
export type UdpMode = (typeof UDP_MODES)[number];

export const TIME_SHIFTS = ['off', 'watched', 'always'] as const;
export type TimeShift = (typeof TIME_SHIFTS)[number];

export function valuesOf(channel: ChannelRow): ChannelValues {
	return {
		name: channel.name,
		channel_number: channel.channel_number,
		channel_group_id: channel.channel_group_id,
		tvg_id: channel.tvg_id ?? '',
		epg_data_id: channel.epg_data_id,
		further_epg_data_ids: channel.further_epg_data_ids,
		epg_offset_minutes: channel.epg_offset_minutes,
		epg_follows_stream: channel.epg_follows_stream,
		logo_url: channel.logo_url ?? '',
		stream_profile_id: channel.stream_profile_id,
		user_level: channel.user_level,
		enabled: channel.enabled,
		is_adult: channel.is_adult,
		healthiest_first: channel.healthiest_first,
		timeshift: channel.timeshift,
		udp_mode: channel.udp_output?.mode ?? 'off',
		udp_address: channel.udp_output?.address ?? '',
		udp_interface: channel.udp_output?.interface ?? '',
		udp_ttl: channel.udp_output?.ttl ?? null,
	};
}

export const NEW_CHANNEL: ChannelValues = {
	name: '',
	channel_number: null,
	channel_group_id: null,
	tvg_id: '',
	epg_data_id: null,
	further_epg_data_ids: [],
	epg_offset_minutes: null,
	epg_follows_stream: false,
	logo_url: '',
	stream_profile_id: null,
	user_level: 0,
	enabled: true,
	is_adult: false,
	healthiest_first: false,
	timeshift: null,
	udp_mode: 'off',
	udp_address: '',
	udp_interface: '',
	udp_ttl: null,
};

/** Guide channels of a channel behind its first one, at most. */
export const FURTHER_GUIDES_MAX = 4;

/** The fields of the output as datagrams, by their names in the form. */
const UDP_FIELDS = {
	udp_mode: 'mode',
	udp_address: 'address',
	udp_interface: 'interface',
	udp_ttl: 'ttl',
} as const;
type UdpField = keyof typeof UDP_FIELDS;
type ChannelEdit = Schemas['PatchedChannelEditRequest'];

/** Returns the body of the request from the changed values. The fields of the output are one object in it. */
export function bodyOf(values: ChannelValues, changed: Partial<ChannelValues>): ChannelEdit {
	const { udp_mode, udp_address, udp_interface, udp_ttl, ...body } = changed;
	const edit: ChannelEdit = body;
	if ([udp_mode, udp_address, udp_interface, udp_ttl].every((it) => it === undefined)) return edit;
	edit.udp_output =
		values.udp_mode === 'off'
			? null
			: {
					mode: values.udp_mode,
					address: values.udp_address,
					interface: values.udp_interface.trim() || null,
					...(values.udp_ttl === null ? {} : { ttl: values.udp_ttl }),
				};
	return edit;
}

/** Returns the error with the message for a part of the output at the field of that part. */
export function atFields(error: unknown): unknown {
	const message = error instanceof ApiError ? error.fields.udp_output : undefined;
	if (!(error instanceof ApiError) || message === undefined) return error;
	const { udp_output: _, ...fields } = error.fields;
	const [name, rest] = [message.slice(0, message.indexOf(': ')), message.slice(message.indexOf(': ') + 2)];
	const field = (Object.keys(UDP_FIELDS) as UdpField[]).find((it) => UDP_FIELDS[it] === name);
	const own = field === undefined ? { udp_address: message } : { [field]: rest };
	return new ApiError(error.status, error.message, { ...fields, ...own }, error.body);
}

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
