// Integrations as the pages show them, and what their forms send.

import { api, ok, type Paged, type Schemas } from '$lib/api';

export type Integration = Schemas['Integration'];
export type Preset = Schemas['Preset'];
export type PresetName = Preset['preset'];
export type ConnectEvent = Schemas['ConnectEvent'];
export type EventName = ConnectEvent['event'];
/** What receives an event: an integration, or a plugin whose action runs. */
export interface Received {
	integration: number | null;
	integration_name: string | null;
	/** Its key. */
	plugin: string | null;
}
export type Delivery = Schemas['ConnectDelivery'];
export type LogEntry = Schemas['DeliveryLog'];
export type Cause = LogEntry['cause'];
export type Fault = Schemas['TemplateFault'];
type Method = NonNullable<Integration['method']>;

/** Replaces the values of headers in answers. */
export const HIDDEN = '***';
/** Returns whether the value of a header of requests is a secret. */
export const isSecretHeader = (name: string): boolean =>
	/authorization|token|secret|password|api-?key|cookie|signature/i.test(name);

export const METHODS = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'] as const satisfies readonly Method[];
const HOUR = 3600;

export interface Header {
	name: string;
	value: string;
}

/** Values of the form of an integration. */
export interface Values {
	name: string;
	type: Integration['type'];
	enabled: boolean;
	preset: PresetName | null;
	url: string;
	method: Method;
	headers: Header[];
	options: Record<string, string>;
	ca_certificate: string;
	script_path: string;
	working_directory: string;
	/** Seconds. */
	timeout: number | null;
	plugin: string;
	action: string;
	parallel: number | null;
	/** Hours; `null` for those of the service. */
	max_age: number | null;
	/** Minutes between two messages at least; `null` sends each event. */
	digest_minutes: number | null;
	/** Whether payloads have whole addresses of streams. */
	trusted: boolean;
}

export const NEW_INTEGRATION: Values = {
	name: '',
	type: 'webhook',
	enabled: true,
	preset: null,
	url: '',
	method: 'POST',
	headers: [],
	options: {},
	ca_certificate: '',
	script_path: '',
	working_directory: '',
	timeout: 30,
	plugin: '',
	action: '',
	parallel: 1,
	max_age: null,
	digest_minutes: null,
	trusted: false,
};

const textsOf = (members: Record<string, unknown>): Record<string, string> =>
	Object.fromEntries(
		Object.entries(members).map(([name, it]) => [name, typeof it === 'string' ? it : String(it)]),
	);

export function valuesOf(it: Integration): Values {
	return {
		name: it.name,
		type: it.type,
		enabled: it.enabled,
		preset: it.preset,
		url: it.url ?? '',
		method: it.method ?? 'POST',
		headers: Object.entries(textsOf(it.headers)).map(([name, value]) => ({ name, value })),
		options: textsOf(it.options),
		ca_certificate: it.ca_certificate ?? '',
		script_path: it.script_path ?? '',
		working_directory: it.working_directory ?? '',
		timeout: it.timeout ?? NEW_INTEGRATION.timeout,
		plugin: it.plugin ?? '',
		action: it.action ?? '',
		parallel: it.parallel,
		max_age: it.max_age === null ? null : it.max_age / HOUR,
		digest_minutes: it.digest_minutes,
		trusted: it.trusted,
	};
}

/** Names of the values that belong to the target of each type. */
const OF_TARGET: Record<Integration['type'], readonly (keyof Values)[]> = {
	webhook: ['preset', 'url', 'method', 'headers', 'options', 'ca_certificate'],
	script: ['script_path', 'working_directory', 'timeout'],
	plugin: ['plugin', 'action'],
};
const ALL_OF_TARGETS = Object.values(OF_TARGET).flat();

/** Returns what a form sends: the changed values that the type has. */
export function bodyOf(type: Integration['type'], changed: Partial<Values>) {
	const own = Object.entries(changed).filter(
		([name]) =>
			!ALL_OF_TARGETS.includes(name as keyof Values) || OF_TARGET[type].includes(name as keyof Values),
	);
	const { headers, max_age, parallel, timeout, working_directory, ca_certificate, ...same } =
		Object.fromEntries(own) as Partial<Values>;
	return {
		...same,
		...(headers === undefined
			? {}
			: {
					headers: Object.fromEntries(
						headers.filter((it) => it.name.trim() !== '').map((it) => [it.name.trim(), it.value]),
					),
				}),
		...(max_age === undefined ? {} : { max_age: max_age === null ? null : Math.round(max_age * HOUR) }),
		...(typeof parallel === 'number' ? { parallel } : {}),
		...(timeout === undefined ? {} : { timeout }),
		...(working_directory === undefined ? {} : { working_directory: working_directory || null }),
		...(ca_certificate === undefined ? {} : { ca_certificate: ca_certificate || null }),
	};
}

/** Returns the options that an integration has to have, besides those that it has. */
export function optionsOf(presets: readonly Preset[], values: Pick<Values, 'preset' | 'options'>): string[] {
	const needed = presets.find((it) => it.preset === values.preset)?.options ?? [];
	return [...new Set([...needed, ...Object.keys(values.options)])];
}

/** Returns the fault that the message of a refused template names, such as `vod_stop: line 1, column 4: …`. */
export function faultIn(message: string): Fault | null {
	const found = /line (\d+), column (\d+): ([\s\S]*)$/.exec(message);
	return found ? { line: Number(found[1]), column: Number(found[2]), message: found[3] ?? '' } : null;
}

/** Returns the position in a text of a line and a character of it, both counted from 1. */
export function offsetOf(source: string, { line, column }: Pick<Fault, 'line' | 'column'>): number {
	const lines = source.split('\n');
	const before = lines.slice(0, line - 1).reduce((sum, it) => sum + it.length + 1, 0);
	// A character outside of the first plane takes two places.
	const inside = [...(lines[line - 1] ?? '')].slice(0, column - 1).join('').length;
	return Math.min(source.length, before + inside);
}

/** Returns a text with JSON laid out for people; any other text as it is. */
export function laidOut(source: string): string {
	try {
		return JSON.stringify(JSON.parse(source), null, 2);
	} catch {
		return source;
	}
}

export const readPresets = async (signal: AbortSignal): Promise<Preset[]> =>
	(await ok(api.GET('/api/connect/presets/', { signal }))).results;

export const readEvents = async (signal: AbortSignal): Promise<ConnectEvent[]> =>
	(await ok(api.GET('/api/connect/events/', { signal }))).results;

/** Reads a page of the integrations. */
export async function readIntegrations(
	query: { search?: string; page: number; page_size: number },
	signal: AbortSignal,
): Promise<Paged<Integration>> {
	const found = await ok(api.GET('/api/connect/integrations/', { params: { query }, signal }));
	// Without a page, the answer would be all of them.
	return Array.isArray(found) ? { count: found.length, results: found, next: null, previous: null } : found;
}
