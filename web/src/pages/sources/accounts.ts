// Facts about accounts, and the values of their form.

import { ApiError, type Schemas } from '$lib/api';
import { BOX_VALUES } from './newSource';

export type Account = Schemas['M3UAccount'];
export type LocalHosts = Schemas['M3UAccountLocalHosts'];
export type Profile = Schemas['M3UAccountProfile'];

/** Limit of a profile: its own, otherwise that of the panel; 0 is none. */
export function limitOf(profile: Pick<Profile, 'max_streams' | 'panel_max_streams'>): number {
	return profile.max_streams > 0 ? profile.max_streams : (profile.panel_max_streams ?? 0);
}

/** Connections of an account over its active profiles; `max` is 0 if one of them has no limit. */
export function connections(account: {
	profiles: readonly Pick<Profile, 'is_active' | 'current_viewers' | 'max_streams' | 'panel_max_streams'>[];
}) {
	const active = account.profiles.filter((it) => it.is_active);
	const used = account.profiles.reduce((sum, it) => sum + it.current_viewers, 0);
	const limits = active.map(limitOf);
	const max = limits.length === 0 || limits.includes(0) ? 0 : limits.reduce((sum, it) => sum + it, 0);
	return { used, max };
}

const DAY_MS = 86_400_000;
/** Days before the end from which an expiry is a warning. */
const WARN_DAYS = 7;

export function expiryTone(at: string, now: number): 'neutral' | 'warn' | 'bad' {
	const left = Date.parse(at) - now;
	if (left <= 0) return 'bad';
	return left <= WARN_DAYS * DAY_MS ? 'warn' : 'neutral';
}

/** Values of the form of an account. Secrets are empty, and stay as they are if they stay empty. */
export interface AccountValues {
	name: string;
	is_active: boolean;
	server_url: string;
	username: string;
	password: string;
	/** That of a box at a portal, with its end hidden until it is changed. */
	mac_address: string;
	device_model: string;
	serial_number: string;
	device_id: string;
	device_id2: string;
	signature: string;
	/** Removes the hidden values of the box that are not entered anew. */
	forgets_box: boolean;
	max_streams: number | null;
	refresh_interval: number | null;
	cron_expression: string;
	stale_stream_days: number | null;
	priority: number | null;
	release_delay: number | null;
	crash_cooling: number | null;
	user_agent: string;
	stream_profile_id: number | null;
	proxy: string;
	verify_certificate: boolean;
	certificate_fingerprint: string;
	certificate_authority: string;
	/** One per line. */
	further_addresses: string;
	live_form: Account['live_form'];
	allowed_networks: Account['allowed_networks'];
	auto_enable_new_groups_live: boolean;
	enable_vod: boolean;
	auto_enable_new_groups_vod: boolean;
	auto_enable_new_groups_series: boolean;
	load_all_episodes: boolean;
	exp_date: string;
	/** Time zone of the archive of the provider; `null`: unknown. */
	timezone: string | null;
}

export function valuesOf(account: Account): AccountValues {
	return {
		name: account.name,
		is_active: account.is_active,
		server_url: account.server_url ?? '',
		username: account.username ?? '',
		password: '',
		mac_address: account.mac_address ?? '',
		device_model: account.device_model ?? '',
		serial_number: '',
		device_id: '',
		device_id2: '',
		signature: '',
		forgets_box: false,
		max_streams: account.max_streams,
		refresh_interval: account.refresh_interval,
		cron_expression: account.cron_expression,
		stale_stream_days: account.stale_stream_days,
		priority: account.priority,
		release_delay: account.release_delay,
		crash_cooling: account.crash_cooling,
		user_agent: account.user_agent ?? '',
		stream_profile_id: account.stream_profile_id,
		proxy: account.proxy ?? '',
		verify_certificate: account.verify_certificate,
		certificate_fingerprint: account.certificate_fingerprint ?? '',
		certificate_authority: account.certificate_authority ?? '',
		further_addresses: account.further_addresses.join('\n'),
		live_form: account.live_form,
		allowed_networks: account.allowed_networks,
		auto_enable_new_groups_live: account.auto_enable_new_groups_live,
		enable_vod: account.enable_vod,
		auto_enable_new_groups_vod: account.auto_enable_new_groups_vod,
		auto_enable_new_groups_series: account.auto_enable_new_groups_series,
		load_all_episodes: account.load_all_episodes,
		exp_date: (account.exp_date ?? '').slice(0, 10),
		timezone: zoneOf(account),
	};
}

function zoneOf(account: Pick<Account, 'custom_properties'>): string | null {
	const zone = account.custom_properties?.timezone;
	return typeof zone === 'string' && zone !== '' ? zone : null;
}

/** Returns the body of the request that changes an account, from the changed values of the form. */
export function bodyOf(
	account: Pick<Account, 'custom_properties'>,
	{ timezone, forgets_box, ...changed }: Partial<AccountValues>,
): Record<string, unknown> {
	const body: Record<string, unknown> = { ...changed };
	// Properties are replaced together.
	if (timezone !== undefined) body.custom_properties = { ...account.custom_properties, timezone };
	if (changed.password === '') delete body.password;
	if (changed.mac_address?.trim() === '') delete body.mac_address;
	for (const name of BOX_VALUES) {
		const value = changed[name]?.trim();
		if (value) body[name] = value;
		// The gateway keeps what is not sent.
		else delete body[name];
		if (!value && forgets_box) body[name] = null;
	}
	if (changed.user_agent === '') body.user_agent = null;
	if (changed.proxy === '') body.proxy = null;
	if (changed.certificate_fingerprint === '') body.certificate_fingerprint = null;
	if (changed.certificate_authority === '') body.certificate_authority = null;
	if (changed.further_addresses !== undefined) body.further_addresses = linesOf(changed.further_addresses);
	if (changed.exp_date !== undefined)
		body.exp_date = changed.exp_date === '' ? null : `${changed.exp_date}T00:00:00Z`;
	return body;
}

/** Returns an error whose message about the time zone belongs to its field. */
export function byField(error: unknown): unknown {
	if (!(error instanceof ApiError)) return error;
	const { custom_properties: message, ...fields } = error.fields;
	if (!message?.startsWith('timezone ')) return error;
	return new ApiError(error.status, error.message, { ...fields, timezone: message }, error.body);
}

/** Returns the lines of a text that are not blank. */
export function linesOf(text: string): string[] {
	return text
		.split('\n')
		.map((it) => it.trim())
		.filter((it) => it !== '');
}

/** Returns scheme and host of an address: its path and query may hold credentials. */
export function hostOf(address: string): string {
	try {
		const url = new URL(address);
		return `${url.protocol}//${url.host}`;
	} catch {
		return '';
	}
}
