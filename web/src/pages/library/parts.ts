import mpegts from 'mpegts.js';
import { isAbort, refused } from '$lib/api';
import type { TsListener } from './filePlayer.svelte';

/** Pause between two looks whether more is wanted, in milliseconds. */
const PAUSE_MS = 250;
/** Pause before more of a file is asked for that is being written, in milliseconds. */
const GROWTH_MS = 1000;

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/**
 * Returns a loader class that reads a file from a position to its end, and waits while enough is there: the gateway then
 * waits too, and asks its provider for no more. It follows a file that is being written to its end.
 */
export function loaderFrom(position: number, listener: TsListener): mpegts.CustomLoaderConstructor {
	return class PartLoader extends mpegts.BaseLoader {
		#request: AbortController | null = null;

		constructor(_seekHandler: mpegts.SeekHandler, _config: mpegts.Config) {
			super('part');
			this._needStash = false;
		}

		override open(source: mpegts.MediaSegment, range: mpegts.Range): void {
			void this.#run(new URL(source.url), position + range.from, range.from);
		}

		override abort(): void {
			this.#request?.abort();
			this.#request = null;
			this._status = mpegts.LoaderStatus.kComplete;
		}

		override destroy(): void {
			this.abort();
			super.destroy();
		}

		async #run(url: URL, from: number, start: number): Promise<void> {
			const request = new AbortController();
			this.#request = request;
			this._status = mpegts.LoaderStatus.kConnecting;
			let received = 0;
			try {
				for (;;) {
					// Asked first: a file that is complete now has nothing behind what is read next.
					const isGrowing = listener.isGrowing();
					const at = from + received;
					const headers: HeadersInit = at > 0 ? { Range: `bytes=${at}-` } : {};
					const answer = await fetch(url, { headers, signal: request.signal });
					if (!answer.ok && !(answer.status === 416 && received > 0)) throw await refused(answer);
					const reader = answer.ok ? answer.body?.getReader() : undefined;
					while (reader) {
						while (!listener.isWanted()) {
							await pause(PAUSE_MS);
							if (request.signal.aborted) return;
						}
						const { done, value } = await reader.read();
						if (request.signal.aborted) return;
						if (done) break;
						this._status = mpegts.LoaderStatus.kBuffering;
						const position = start + received;
						received += value.length;
						const piece = value.buffer.slice(value.byteOffset, value.byteOffset + value.length);
						this.onDataArrival?.(piece as ArrayBuffer, position, received);
					}
					if (!isGrowing) break;
					await pause(GROWTH_MS);
					if (request.signal.aborted) return;
				}
				this._status = mpegts.LoaderStatus.kComplete;
				this.onComplete?.(start, start + received - 1);
			} catch (error) {
				if (request.signal.aborted || isAbort(error)) return;
				this._status = mpegts.LoaderStatus.kError;
				listener.onFailure(error);
			}
		}
	};
}
