import { common } from '$lib/i18n';
import { gatewayText } from '$lib/i18n/gateway.svelte';

/** A request that failed. */
export class ApiError extends Error {
	constructor(
		/** 0: the gateway was not reached. */
		readonly status: number,
		message: string,
		/** Messages of a 400 by field; fields of fields are joined with a dot. */
		readonly fields: Record<string, string> = {},
		readonly body: unknown = null,
	) {
		super(message);
		this.name = 'ApiError';
	}
}

const isTexts = (it: unknown): it is string[] =>
	Array.isArray(it) && it.every((text) => typeof text === 'string');

/** Collects the messages of the fields of a refused body. `codes` are those of the messages, by field. */
function fieldsOf(body: unknown, codes: Record<string, unknown> = {}, prefix = ''): Record<string, string> {
	const found: Record<string, string> = {};
	if (typeof body !== 'object' || body === null || Array.isArray(body)) return found;
	for (const [name, value] of Object.entries(body)) {
		const path = prefix ? `${prefix}.${name}` : name;
		const known = codes[path];
		if (typeof value === 'string') found[path] = value;
		else if (isTexts(value))
			found[path] = value.map((it, n) => gatewayText(it, Array.isArray(known) ? known[n] : null)).join(' ');
		else Object.assign(found, fieldsOf(value, codes, path));
	}
	return found;
}

/** Returns the messages of the fields of a 400. A body with `detail` is about no field. */
function fieldsOfRefusal(body: unknown): Record<string, string> {
	if (typeof body !== 'object' || body === null || detailOf(body) !== null) return {};
	const { codes, ...fields } = body as Record<string, unknown>;
	const hasCodes = typeof codes === 'object' && codes !== null && !Array.isArray(codes);
	return hasCodes ? fieldsOf(fields, codes as Record<string, unknown>) : fieldsOf(body);
}

/** Returns the reason of a refusal in English, as the gateway sends it. */
export const detailOf = (body: unknown): string | null =>
	typeof body === 'object' && body !== null && 'detail' in body && typeof body.detail === 'string'
		? body.detail
		: null;

/** The text that the gateway sends, or a sentence for the status. */
function messageOf(status: number, body: unknown, fields: Record<string, string>): string {
	if (typeof body === 'string' && body.trim() && body.length < 1000) return body.trim();
	const detail = detailOf(body);
	if (detail !== null) return gatewayText(detail, body);
	const first = Object.entries(fields)[0];
	if (first) return first[0] === 'non_field_errors' ? first[1] : `${first[0]}: ${first[1]}`;
	return common().badStatus(status);
}

/** Returns the error for an answer with this status and body. `loadSentences` comes first, so that it has the language. */
export function errorOf(status: number, body: unknown): ApiError {
	const fields = status === 400 ? fieldsOfRefusal(body) : {};
	return new ApiError(status, messageOf(status, body, fields), fields, body);
}

export const unreachable = (): ApiError => new ApiError(0, common().unreachable);

/** Returns the text of any failure. */
export function problem(error: unknown): string {
	if (error instanceof Error && error.message) return error.message;
	return String(error);
}

/** A record that an undo would overwrite although it has changed since. */
interface Conflict {
	name: string;
	message: string;
}

/** Records that a message names. */
const NAMED_MAX = 3;

/** Returns the reason why an undo was refused, with the records that changed since. */
export function refusal(error: unknown): string {
	const body = error instanceof ApiError ? (error.body as { conflicts?: Conflict[] } | null) : null;
	const conflicts = body?.conflicts ?? [];
	if (conflicts.length === 0) return problem(error);
	const named = conflicts.slice(0, NAMED_MAX).map((it) => `${it.name}: ${it.message}`);
	return [...named, ...(conflicts.length > NAMED_MAX ? ['…'] : [])].join(' ');
}

/** Returns whether a request was given up because something newer took its place. */
export const isAbort = (error: unknown): boolean =>
	error instanceof DOMException && (error.name === 'AbortError' || error.name === 'TimeoutError');
