// The properties of a generated guide as the values of a form. Properties that the form does not know stay.

import { ApiError, type Schemas } from '$lib/api';

type Json = Record<string, unknown>;
export type Preview = Schemas['GuidePreview'];

/** The texts of the form; a property that is missing is an empty text. */
export const TEXTS = [
	'title_pattern',
	'time_pattern',
	'date_pattern',
	'title_template',
	'description_template',
	'upcoming_title_template',
	'upcoming_description_template',
	'ended_title_template',
	'ended_description_template',
	'fallback_title_template',
	'fallback_description_template',
	'categories',
	'channel_logo_url',
	'program_poster_url',
] as const;
const ZONES = ['timezone', 'output_timezone'] as const;
const FLAGS = ['include_date', 'include_live', 'include_new'] as const;

export type GeneratedValues = Record<(typeof TEXTS)[number], string> &
	Record<(typeof ZONES)[number], string | null> &
	Record<(typeof FLAGS)[number], boolean> & {
		/** Length of a programme in minutes; `null`: the default. */
		program_duration: number | null;
		name_source: 'channel' | 'stream';
		/** Position in the failover order, from 1. */
		stream_index: number | null;
	};

/** Texts and numbers may be written as each other, and categories as a list. */
function textOf(value: unknown): string {
	if (Array.isArray(value)) return value.filter((it) => typeof it === 'string').join(', ');
	return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function numberOf(value: unknown): number | null {
	const number = textOf(value).trim() === '' ? NaN : Number(value);
	return Number.isFinite(number) ? number : null;
}

export function valuesOf(properties: Json | null | undefined): GeneratedValues {
	const found = properties ?? {};
	const texts = Object.fromEntries(TEXTS.map((it) => [it, textOf(found[it])]));
	const zones = Object.fromEntries(ZONES.map((it) => [it, textOf(found[it]).trim() || null]));
	const flags = Object.fromEntries(FLAGS.map((it) => [it, found[it] === true]));
	return {
		...(texts as Record<(typeof TEXTS)[number], string>),
		...(zones as Record<(typeof ZONES)[number], string | null>),
		...(flags as Record<(typeof FLAGS)[number], boolean>),
		program_duration: numberOf(found.program_duration),
		name_source: found.name_source === 'stream' ? 'stream' : 'channel',
		stream_index: numberOf(found.stream_index),
	};
}

/** Returns the properties to save. Empty values are left out, so that their defaults count. */
export function propertiesOf(values: GeneratedValues, before: Json | null | undefined): Json {
	const properties: Json = { ...before };
	for (const [name, value] of Object.entries(values)) {
		const isDefault = value === null || value === false || (typeof value === 'string' && value.trim() === '');
		if (isDefault || (name === 'name_source' && value === 'channel')) delete properties[name];
		else properties[name] = value;
	}
	if (values.name_source === 'channel') delete properties.stream_index;
	return properties;
}

/** Returns an error whose messages belong to the fields: the gateway names the property in each sentence. */
export function byField(error: unknown): unknown {
	if (!(error instanceof ApiError)) return error;
	const all = (error.body as { custom_properties?: unknown } | null)?.custom_properties;
	if (!Array.isArray(all)) return error;
	const fields: Record<string, string> = {};
	for (const sentence of all) {
		const [, name, message] = /^(\w+): (.+)$/s.exec(String(sentence)) ?? [];
		if (name && message) fields[name] = message;
	}
	return Object.keys(fields).length > 0
		? new ApiError(error.status, error.message, fields, error.body)
		: error;
}
