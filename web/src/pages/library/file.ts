import { isAbort, refused, ApiError } from '$lib/api';
import { base } from '$lib/router';
import { text } from './text';

/** Reads bytes of a file from one position to before another; fewer at its end. */
export type ReadBytes = (from: number, until: number) => Promise<Uint8Array>;

/** Smallest part that is asked for, so that neighbouring reads need one request. */
const PART_BYTES = 64 * 1024;
/** Parts that are kept. */
const PARTS_MAX = 16;

interface Part {
	from: number;
	bytes: Uint8Array;
}

/** Returns the path of an address that plays a title or a part of the past, on the host of this page. */
export function pathOf(address: string, version: Record<string, string | number> = {}): string {
	const url = new URL(address, location.href);
	for (const [name, value] of Object.entries(version)) url.searchParams.set(name, String(value));
	// The gateway may write another host, port and path prefix into its addresses than those of this page.
	const at = url.pathname.search(/\/proxy\/(vod|catchup)\//);
	return base + url.pathname.slice(Math.max(0, at)) + url.search;
}

/** Reads the body of an answer up to a number of bytes, and ends it. */
async function firstBytes(answer: Response, bytes: number): Promise<Uint8Array> {
	const reader = answer.body?.getReader();
	const all = new Uint8Array(bytes);
	let length = 0;
	while (reader && length < bytes) {
		const { done, value } = await reader.read();
		if (done) break;
		const taken = value.subarray(0, bytes - length);
		all.set(taken, length);
		length += taken.length;
	}
	await reader?.cancel().catch(() => undefined);
	return all.subarray(0, length);
}

/** A film or an episode on the gateway, of which parts are read. */
export class RemoteFile {
	/** Length in bytes; `null` while it is unknown, and for a file that can only be read from its beginning. */
	size: number | null = null;

	#path: string;
	#signal: AbortSignal;
	#parts: Part[] = [];

	constructor(path: string, signal: AbortSignal) {
		this.#path = path;
		this.#signal = signal;
	}

	read: ReadBytes = async (from, until) => {
		const known = this.#parts.find((it) => it.from <= from && until <= it.from + it.bytes.length);
		const part = known ?? (await this.#fetch(from, Math.max(until, from + PART_BYTES)));
		return part.bytes.subarray(from - part.from, until - part.from);
	};

	async #fetch(from: number, until: number): Promise<Part> {
		const last = this.size === null ? until : Math.min(until, this.size);
		if (last <= from) return { from, bytes: new Uint8Array(0) };
		const headers = { Range: `bytes=${from}-${last - 1}` };
		const answer = await fetch(new URL(this.#path, location.href), { headers, signal: this.#signal }).catch(
			(error: unknown) => {
				throw isAbort(error) ? error : new ApiError(0, text().unreachable, {}, null);
			},
		);
		if (answer.status === 416) return { from, bytes: new Uint8Array(0) };
		if (!answer.ok) throw await refused(answer);
		const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers.get('Content-Range') ?? '');
		if (answer.status !== 206 || !range) {
			// Without parts, only the beginning can be read.
			if (from > 0) return { from, bytes: new Uint8Array(0) };
			return this.#keep({ from, bytes: await firstBytes(answer, last) });
		}
		this.size = Number(range[2]);
		return this.#keep({ from, bytes: await firstBytes(answer, last - from) });
	}

	#keep(part: Part): Part {
		this.#parts = [part, ...this.#parts].slice(0, PARTS_MAX);
		return part;
	}
}
