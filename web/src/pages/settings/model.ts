// The core settings as one list: each member with its own value, if it has one, and its default.

import type { Schemas } from '$lib/api';

export type SettingGroup = Schemas['CoreSettings'];
type Json = Record<string, unknown>;

/** A value that a field can hold. */
export type Value = string | number | boolean | null;

export interface Setting {
	/** Name of the member; that of a part of an object is behind a dot. */
	name: string;
	/** The value in force while the setting has none of its own. */
	fallback: Value;
	/** The own value; `undefined` if there is none. */
	own: Value | undefined;
	/** Whether the value is a list of texts, one per line. */
	isList?: true;
}

/** The groups in the order in which people need them; those that are not named come behind them. */
const ORDER = [
	'system_settings',
	'stream_settings',
	'epg_settings',
	'dvr_settings',
	'timeshift_settings',
	'library_settings',
	'name_settings',
	'completion_settings',
	'user_limit_settings',
	'tuner_settings',
	'network_access',
	'history_settings',
	'backup_settings',
	'proxy_settings',
];

/** Returns the groups in the order in which people need them. */
export function inSections<T extends { key: string }>(groups: readonly T[]): T[] {
	const place = (it: T): number => (ORDER.includes(it.key) ? ORDER.indexOf(it.key) : ORDER.length);
	return groups.toSorted((a, b) => place(a) - place(b));
}

/** Settings of the engine that people choose by taste. The others are times and sizes that fit almost everywhere. */
const PLAIN_OF_ENGINE = new Set([
	'at_limit',
	'channel_shutdown_delay',
	'return_to_preferred_after',
	'hls_height_max',
	'hls_bits_per_second_max',
	'transcoders_max',
]);
/** Settings of other groups that few people need. */
const ADVANCED = new Set(['log_level', 'multicast_interface', 'udp_receive_buffer_bytes', 'device_id']);

/** Returns whether a setting is shown only on request. */
export const isAdvanced = (group: string, name: string): boolean =>
	group === 'proxy_settings' ? !PLAIN_OF_ENGINE.has(name) : ADVANCED.has(name);

const isObject = (value: unknown): value is Json =>
	typeof value === 'object' && value !== null && !Array.isArray(value);

/** Lists in place of a text are written with commas, as the API accepts them. */
function plain(value: unknown): Value | undefined {
	if (value === undefined || isObject(value)) return undefined;
	return Array.isArray(value) ? value.join(', ') : (value as Value);
}

const linesOf = (value: unknown): string => (Array.isArray(value) ? value.join('\n') : '');

/** Returns the settings of a group that have an effect: those with a default. */
export function settingsOf(group: Pick<SettingGroup, 'defaults' | 'value'>): Setting[] {
	const [defaults, values] = [group.defaults as Json, group.value as Json];
	return Object.entries(defaults).flatMap(([name, fallback]) => {
		const own = values[name];
		if (Array.isArray(fallback)) {
			const lines = own === undefined ? undefined : linesOf(own);
			return [{ name, fallback: linesOf(fallback), own: lines, isList: true }];
		}
		if (!isObject(fallback)) return [{ name, fallback: plain(fallback) ?? null, own: plain(own) }];
		const parts = isObject(own) ? own : {};
		return Object.entries(fallback).map(([part, it]) => ({
			name: `${name}.${part}`,
			fallback: plain(it) ?? null,
			own: plain(parts[part]),
		}));
	});
}

/** Returns the values of the form of a group, by name. */
export function valuesOf(settings: readonly Setting[]): Record<string, Value> {
	return Object.fromEntries(settings.map((it) => [it.name, it.own ?? it.fallback]));
}

/** Returns the value that the API takes for that of a field. Blanks at the ends of a text in a list count. */
function sent(fallback: unknown, value: Value): unknown {
	if (Array.isArray(fallback))
		return String(value ?? '')
			.split('\n')
			.filter((it) => it.trim() !== '');
	return fallback === null && value === '' ? null : value;
}

/** Returns the members to send for changed values. Parts of an object are sent with its other own parts. */
export function bodyOf(
	group: Pick<SettingGroup, 'defaults' | 'value'>,
	changed: Record<string, Value>,
): Json {
	const body: Json = {};
	for (const [path, value] of Object.entries(changed)) {
		const [name, part] = path.split('.', 2) as [string, string?];
		if (part === undefined) {
			body[name] = sent((group.defaults as Json)[name], value);
			continue;
		}
		const own = (group.value as Json)[name];
		const before = body[name] ?? own;
		body[name] = { ...(isObject(before) ? before : {}), [part]: value };
	}
	return body;
}

/** Returns all own values without one of them, which gets its default back. */
export function withoutOwn(group: Pick<SettingGroup, 'value'>, path: string): Json {
	const [name, part] = path.split('.', 2) as [string, string?];
	const { [name]: own, ...others } = group.value as Json;
	if (part === undefined || !isObject(own)) return others;
	const { [part]: _, ...parts } = own;
	return Object.keys(parts).length > 0 ? { ...others, [name]: parts } : others;
}

/** Returns whether a setting matches all words of a search. */
export function matches(search: string, texts: readonly string[]): boolean {
	const all = texts.join(' ').toLowerCase();
	return search
		.toLowerCase()
		.split(/\s+/)
		.every((word) => all.includes(word));
}
