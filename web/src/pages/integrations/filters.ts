// The filters of queue and log, as the address holds them.

import { readPlugins } from '../plugins/model';
import { readIntegrations, type Cause, type EventName } from './model';
import { pluginOptions } from './plugins';
import { text } from './text';

/** Removes the filters of the tables from the address, and the page with them. */
export const NO_FILTERS = {
	state: null,
	status: null,
	of: null,
	cause: null,
	integration: null,
	plugin: null,
	page: null,
};

/** A page of a table. */
export const SIZE = 50;

/** Returns a value of the address if it is one of these. */
export const oneOf = <T extends string>(value: string | null, all: readonly T[]): T | null =>
	all.find((it) => it === value) ?? null;

/** Returns the number of the page, counted from 1. */
export const pageOf = (query: URLSearchParams): number =>
	Math.min(100_000, Math.max(1, Math.floor(Number(query.get('page') ?? 1)) || 1));

/** Returns the event that the address names. */
export const eventOf = (query: URLSearchParams): EventName | null =>
	oneOf(query.get('of'), Object.keys(text().events) as EventName[]);

/** Returns the integration that the address names. */
export function integrationOf(query: URLSearchParams): number | null {
	const name = query.get('integration') ?? '';
	return /^\d{1,9}$/.test(name) ? Number(name) : null;
}

/** Returns the key of the plugin that the address names. */
export const pluginOf = (query: URLSearchParams): string | null => query.get('plugin') || null;

/** Returns the cause that the address names. */
export const causeOf = (query: URLSearchParams): Cause | null =>
	oneOf(query.get('cause'), Object.keys(text().causes) as Cause[]);

export const causeOptions = () => [
	{ value: null as Cause | null, label: text().anyCause },
	...(Object.entries(text().causes) as [Cause, string][]).map(([value, label]) => ({
		value: value as Cause | null,
		label,
	})),
];

export const eventOptions = () => [
	{ value: null as EventName | null, label: text().anyEvent },
	...(Object.entries(text().events) as [EventName, string][]).map(([value, label]) => ({
		value: value as EventName | null,
		label,
	})),
];

/** Reads the names of the plugins as options. */
export async function readPluginOptions(signal: AbortSignal) {
	return [
		{ value: null as string | null, label: text().anyPlugin },
		...pluginOptions(await readPlugins(signal)).map((it) => ({ ...it, value: it.value as string | null })),
	];
}

/** Reads the names of the integrations, which are few, as options. */
export async function readOptions(signal: AbortSignal) {
	const { results } = await readIntegrations({ page: 1, page_size: 200 }, signal);
	return [
		{ value: null as number | null, label: text().anyIntegration },
		...results.map((it) => ({ value: it.id as number | null, label: it.name })),
	];
}

/** Returns only members that say something. */
export const given = <T extends object>(members: T): { [K in keyof T]?: NonNullable<T[K]> } =>
	Object.fromEntries(Object.entries(members).filter((it) => it[1] !== null)) as {
		[K in keyof T]?: NonNullable<T[K]>;
	};
