import mpegts from 'mpegts.js';
import { ApiError, call, isAbort } from '$lib/api';

/** Called by a loader with each piece, and with the reason why there is none. */
export interface LoaderListener {
	/** Returns the bytes that are played. */
	onBytes: (bytes: Uint8Array) => Uint8Array;
	onFailure: (error: unknown) => void;
}

/** Returns a loader class that sends the token as a header and reports why the gateway refuses. */
export function loaderFor(listener: LoaderListener): mpegts.CustomLoaderConstructor {
	return class TokenLoader extends mpegts.BaseLoader {
		#request: AbortController | null = null;

		constructor(_seekHandler: mpegts.SeekHandler, _config: mpegts.Config) {
			super('token');
			this._needStash = true;
		}

		override open(source: mpegts.MediaSegment): void {
			void this.#run(new URL(source.url));
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

		async #run(url: URL): Promise<void> {
			const request = new AbortController();
			this.#request = request;
			this._status = mpegts.LoaderStatus.kConnecting;
			try {
				const answer = await call(url.pathname + url.search, { signal: request.signal });
				const reader = answer.body?.getReader();
				let received = 0;
				while (reader) {
					const { done, value } = await reader.read();
					if (done || request.signal.aborted) break;
					this._status = mpegts.LoaderStatus.kBuffering;
					const played = listener.onBytes(value);
					if (played.length === 0) continue;
					const start = received;
					received += played.length;
					const chunk = played.buffer.slice(played.byteOffset, played.byteOffset + played.length);
					this.onDataArrival?.(chunk as ArrayBuffer, start, received);
				}
				if (request.signal.aborted) return;
				this._status = mpegts.LoaderStatus.kComplete;
				listener.onFailure(null);
			} catch (error) {
				if (request.signal.aborted || isAbort(error)) return;
				this._status = mpegts.LoaderStatus.kError;
				listener.onFailure(error instanceof Error ? error : new ApiError(0, String(error)));
			}
		}
	};
}
