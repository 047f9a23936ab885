// Pictures of channels that play. Each is an MP4 with one frame, which browsers show that play its codec, also over plain HTTP.

import { ApiError, call } from '$lib/api';

/** A picture is renewed at most this often, in milliseconds. */
export const RENEWAL_MS = 10_000;
/** Requests at one time. A browser opens six connections to a host, and the rest of the page needs some of them. */
const AT_ONCE_MAX = 2;
/** Codecs that browsers do not play, by their names in ffmpeg. */
const UNPLAYABLE = ['mpeg1video', 'mpeg2video', 'mpeg4', 'vc1', 'cavs'];

/** Returns whether a browser may show a picture with this codec; an unknown one is tried. */
export const mayShow = (codec: string | null | undefined): boolean => !UNPLAYABLE.includes(codec ?? '');

let running = 0;
const waiting: (() => void)[] = [];

/** Runs a few of these at one time, the others in their order. */
async function inTurn<T>(run: () => Promise<T>): Promise<T> {
	if (running < AT_ONCE_MAX) running += 1;
	else await new Promise<void>((resolve) => waiting.push(resolve));
	try {
		return await run();
	} finally {
		const next = waiting.shift();
		if (next) next();
		else running -= 1;
	}
}

/** Waits this long, or until the signal. */
const pause = (length: number, signal: AbortSignal): Promise<void> =>
	new Promise((resolve) => {
		const timer = setTimeout(resolve, length);
		signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
	});

/** The newest picture of one channel. */
export class StillPicture {
	/** Addresses in this browser: the picture that is drawn, and the one that replaces it as soon as it is decoded. */
	urls = $state<string[]>([]);
	#tag = '';
	#askedAt = -Infinity;

	/** Renews the picture until the returned function is called. */
	follow(uuid: string): () => void {
		const stop = new AbortController();
		void this.#follow(uuid, stop.signal);
		return () => stop.abort();
	}

	/** Drops the pictures before this one, which is drawn now. */
	drawn(url: string): void {
		if (this.urls.includes(url)) this.#keep(this.urls.slice(this.urls.indexOf(url)));
	}

	/** Drops the picture. */
	clear(): void {
		this.#keep([]);
		this.#tag = '';
	}

	#keep(urls: string[]): void {
		for (const it of this.urls) if (!urls.includes(it)) URL.revokeObjectURL(it);
		this.urls = urls;
	}

	async #follow(uuid: string, signal: AbortSignal): Promise<void> {
		while (!signal.aborted) {
			const since = Date.now() - this.#askedAt;
			if (since < RENEWAL_MS) await pause(RENEWAL_MS - since, signal);
			await inTurn(async () => {
				if (!signal.aborted) await this.#renew(uuid, signal);
			});
		}
	}

	async #renew(uuid: string, signal: AbortSignal): Promise<void> {
		this.#askedAt = Date.now();
		try {
			const headers: Record<string, string> = this.#tag === '' ? {} : { 'If-None-Match': this.#tag };
			const answer = await call(`/proxy/ts/still/${uuid}?quiet=true`, { headers, signal });
			const picture = await answer.blob();
			if (signal.aborted) return;
			// The channel has none, or none yet.
			if (answer.status === 204) return this.clear();
			this.#keep([...this.urls.slice(0, 1), URL.createObjectURL(picture)]);
			this.#tag = answer.headers.get('ETag') ?? '';
		} catch (error) {
			// The picture stays if it is the newest one, or if the gateway cannot be reached at the moment.
			const isKept = error instanceof ApiError && (error.status === 304 || error.status === 0);
			if (!isKept && !signal.aborted) this.clear();
		}
	}
}
