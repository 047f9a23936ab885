import mpegts from 'mpegts.js';
import { isAbort, refused } from '$lib/api';
import type { TsListener } from './filePlayer.svelte';

/** Pause between two looks whether more is wanted, in milliseconds. */
const PAUSE_MS = 250;

/**
 * Returns a loader class that reads a file from a position to its end, and waits while enough is there: the gateway then
 * waits too, and asks its provider for no more.
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
				const headers: HeadersInit = from > 0 ? { Range: `bytes=${from}-` } : {};
				const answer = await fetch(url, { headers, signal: request.signal });
				if (!answer.ok) throw await refused(answer);
				const reader = answer.body?.getReader();
				while (reader) {
					while (!listener.isWanted()) {
						await new Promise((done) => setTimeout(done, PAUSE_MS));
						if (request.signal.aborted) return;
					}
					const { done, value } = await reader.read();
					if (request.signal.aborted) return;
					if (done) break;
					this._status = mpegts.LoaderStatus.kBuffering;
					const at = start + received;
					received += value.length;
					const piece = value.buffer.slice(value.byteOffset, value.byteOffset + value.length);
					this.onDataArrival?.(piece as ArrayBuffer, at, received);
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
