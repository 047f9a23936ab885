import createClient from 'openapi-fetch';
import { session } from '$lib/auth';
import { loadSentences } from '$lib/i18n/gateway.svelte';
import { base } from '../router/base';
import { ApiError, errorOf, isAbort, unreachable } from './errors';
import type { components, paths } from './schema';

export { ApiError, detailOf, isAbort, problem, refusal } from './errors';

export type Schemas = components['schemas'];

/** A page of a list. */
export interface Paged<T> {
	count: number;
	results: T[];
	next?: string | null;
	previous?: string | null;
}

/** Returns all results of a list that is an array without a page. */
export const listed = <T>(list: T[] | { results: T[] }): T[] => (Array.isArray(list) ? list : list.results);

/** Sends a request with the token of the user, and once more with a new one after a 401. */
async function send(request: Request): Promise<Response> {
	const attempt = async (renew: boolean): Promise<Response> => {
		const token = await session.token(renew);
		const sent = request.clone();
		if (token) sent.headers.set('Authorization', `Bearer ${token}`);
		return fetch(sent);
	};
	try {
		const answer = await attempt(false);
		return answer.status === 401 && session.user ? await attempt(true) : answer;
	} catch (error) {
		if (isAbort(error) || error instanceof ApiError) throw error;
		throw unreachable();
	}
}

/** The client of the API. Its answers are read with `ok`. */
export const api = createClient<paths>({
	baseUrl: base || (typeof location === 'undefined' ? '' : location.origin),
	fetch: send,
	headers: { Accept: 'application/json' },
	querySerializer: { array: { style: 'form', explode: false } },
});

/** The entity tags of the records that were read. */
const tags = new WeakMap<object, string>();

function remember(record: unknown, response: Response): void {
	const tag = response.headers.get('ETag');
	if (tag && typeof record === 'object' && record !== null) tags.set(record, tag);
}

/** Returns the headers of a write that is refused with 412 if the record has changed since it was read. */
export function ifUnchanged(record: unknown): Record<string, string> {
	const tag = typeof record === 'object' && record !== null ? tags.get(record) : undefined;
	return tag ? { 'If-Match': tag } : {};
}

/** Returns the body of an answer. Throws `ApiError`. */
export async function ok<T>(request: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
	const { data, error, response } = await request;
	// With 412, the body is the record as it is now.
	remember(response.ok ? data : error, response);
	if (!response.ok) {
		await loadSentences();
		throw errorOf(response.status, error);
	}
	return data as T;
}

/** Returns the error for an answer that refuses. */
export async function refused(answer: Response): Promise<ApiError> {
	const text = await answer.text();
	let body: unknown = text;
	try {
		body = JSON.parse(text);
	} catch {
		// Text of a proxy, or no body.
	}
	await loadSentences();
	return errorOf(answer.status, body);
}

/** Sends a request to a path below the base path, for what `api` cannot send. Throws `ApiError` for a refusal. */
export async function call(path: string, init: RequestInit = {}): Promise<Response> {
	const answer = await send(new Request(new URL(base + path, location.href), init));
	if (answer.ok) return answer;
	throw await refused(answer);
}

/** Uploads a form, and reports how much of it was sent. */
export async function upload<T>(
	path: string,
	form: FormData,
	onProgress?: (fraction: number) => void,
	signal?: AbortSignal,
): Promise<T> {
	// Only this interface reports progress of an upload.
	const token = await session.token();
	return new Promise<T>((resolve, reject) => {
		const request = new XMLHttpRequest();
		request.open('POST', base + path);
		request.responseType = 'json';
		if (token) request.setRequestHeader('Authorization', `Bearer ${token}`);
		request.upload.onprogress = (it) => {
			if (it.lengthComputable) onProgress?.(it.loaded / it.total);
		};
		request.onload = () => {
			if (request.status >= 200 && request.status < 300) resolve(request.response as T);
			else void loadSentences().then(() => reject(errorOf(request.status, request.response)));
		};
		request.onerror = () => reject(unreachable());
		request.onabort = () => reject(new DOMException('aborted', 'AbortError'));
		signal?.addEventListener('abort', () => request.abort(), { once: true });
		request.send(form);
	});
}

/** Saves a text or a blob as a file. */
export function saveFile(name: string, content: Blob): void {
	const link = document.createElement('a');
	link.href = URL.createObjectURL(content);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Saves an answer as a file. With a body, the request is a POST. */
export async function download(path: string, name: string, body?: unknown): Promise<void> {
	const init =
		body === undefined
			? {}
			: { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
	const answer = await call(path, init);
	saveFile(name, await answer.blob());
}

const PICTURES =
	/^\/api\/(channels\/logos|accounts\/avatars|plugins\/plugins|vod\/(movies|series|episodes|vodlogos))\//;

/** Returns the address of an image on our own host; others are not loaded. */
export function imageUrl(address: string | null | undefined): string | undefined {
	if (!address) return undefined;
	try {
		const url = new URL(address, location.href);
		// The gateway may write another host into its addresses than the one of this page.
		const path = url.pathname.slice(url.pathname.indexOf('/api/'));
		if (!PICTURES.test(path)) return undefined;
		return base + path + url.search;
	} catch {
		return undefined;
	}
}

/** Returns the address of the cached logo of a channel. Pictures of providers are never loaded from their hosts. */
export const logoOf = (channel: { logo_id: number | null }): string | undefined =>
	channel.logo_id === null ? undefined : `${base}/api/channels/logos/${channel.logo_id}/cache/`;
