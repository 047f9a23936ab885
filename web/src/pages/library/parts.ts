import mpegts from 'mpegts.js';
import { isAbort, refused } from '$lib/api';
import { SteadyClock } from './clock';
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
			// Bytes that were read, and those that were handed on.
			let [received, given] = [0, 0];
			const clock = new SteadyClock((at, ahead) => listener.onJump(at, ahead));
			try {
				for (;;) {
					// Asked first: a file that is complete now has nothing behind what is read next.
					const isGrowing = listener.isGrowing();
					// Asked from the last byte that is known: a range that begins at the end of the file is refused.
					let known = Math.min(received, 1);
					const at = from + received - known;
					const headers: HeadersInit = at > 0 ? { Range: `bytes=${at}-` } : {};
					const answer = await fetch(url, { headers, signal: request.signal });
					if (!answer.ok) throw await refused(answer);
					const reader = answer.body?.getReader();
					while (reader) {
						while (!listener.isWanted()) {
							await pause(PAUSE_MS);
							if (request.signal.aborted) return;
						}
						const { done, value } = await reader.read();
						if (request.signal.aborted) return;
						if (done) break;
						this._status = mpegts.LoaderStatus.kBuffering;
						const added = value.subarray(known);
						known -= value.length - added.length;
						received += added.length;
						const { buffer } = clock.push(added);
						if (buffer.byteLength === 0) continue;
						const position = start + given;
						given += buffer.byteLength;
						this.onDataArrival?.(buffer, position, given);
					}
					if (!isGrowing) break;
					await pause(GROWTH_MS);
					if (request.signal.aborted) return;
				}
				this._status = mpegts.LoaderStatus.kComplete;
				this.onComplete?.(start, start + given - 1);
			} catch (error) {
				if (request.signal.aborted || isAbort(error)) return;
				this._status = mpegts.LoaderStatus.kError;
				listener.onFailure(error);
			}
		}
	};
}
