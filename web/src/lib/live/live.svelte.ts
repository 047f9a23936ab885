import { onDestroy } from 'svelte';
import { session } from '$lib/auth';
import { base } from '../router/base';
import { changedIds, readFrame, readStats, type ChannelStats, type Frame } from './frames';

/** Pauses between attempts to connect, in milliseconds. */
const BACKOFF_MS = [1000, 2000, 4000, 8000, 15_000, 30_000];
/** A tab that nobody sees closes its socket after this time. */
const HIDDEN_MS = 60_000;
/** The gateway pings every 25 s; a socket that answers nothing for this time is dead. */
const SILENT_MS = 70_000;
const CHECK_MS = 20_000;

type Handler = (frame: Frame) => void;

/** The WebSocket of this tab. */
class Live {
	state = $state<'connecting' | 'open' | 'closed'>('closed');
	stats = $state.raw<ChannelStats | null>(null);
	ageSeconds = $state(0);
	/** The version of the gateway at the first connection, and whether another one answered since. */
	version = $state<string | null>(null);
	isOutdated = $state(false);
	/** Why the store refuses changes. */
	storeStopped = $state<string | null>(null);
	/** The code of this reason, if it has one. */
	storeStoppedCode = $state.raw<unknown>(null);

	#socket: WebSocket | null = null;
	#handlers = new Map<string, Set<Handler>>();
	#failures = 0;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#hidden: ReturnType<typeof setTimeout> | undefined;
	#heardAt = 0;
	#statsAt = 0;
	#isWanted = false;
	#opening = 0;
	/** The channels whose clients components show; `all` for those of every channel. */
	#shown: string[] = [];

	/** Connects, and stays connected while a user is signed in. */
	start(): void {
		session.onToken(() => this.#tokenChanged());
		document.addEventListener('visibilitychange', () => this.#visibilityChanged());
		addEventListener('online', () => this.#reconnect());
		setInterval(() => this.#tick(), 1000);
		this.#tokenChanged();
	}

	on(type: string, handler: Handler): () => void {
		const handlers = this.#handlers.get(type) ?? new Set();
		this.#handlers.set(type, handlers.add(handler));
		return () => handlers.delete(handler);
	}

	/**
	 * Asks for the clients of a channel, or of `all` channels; others are not sent. Returns what ends it: several parts of a
	 * page can ask at the same time.
	 */
	listClients(of: string): () => void {
		this.#show([...this.#shown, of]);
		let isOver = false;
		return () => {
			const at = isOver ? -1 : this.#shown.indexOf(of);
			isOver = true;
			if (at >= 0) this.#show(this.#shown.toSpliced(at, 1));
		};
	}

	#show(shown: string[]): void {
		const before = this.#clientsOf;
		this.#shown = shown;
		if (this.#clientsOf !== before && this.#socket?.readyState === WebSocket.OPEN)
			this.#subscribe(this.#socket);
	}

	/** The gateway sends the clients of none, one or all channels. */
	get #clientsOf(): string {
		const [first, ...others] = new Set(this.#shown);
		return others.length > 0 ? 'all' : (first ?? 'none');
	}

	#subscribe(socket: WebSocket): void {
		socket.send(JSON.stringify({ type: 'subscribe', clients: this.#clientsOf }));
	}

	#tokenChanged(): void {
		void session.token().then((token) => {
			this.#isWanted = token !== null;
			if (!token) this.#close();
			// A hidden tab that has closed its socket gets another one when it is seen again.
			else if (this.#socket || !document.hidden) void this.#open();
		});
	}

	/** Opens a socket beside the present one, which closes once the new one has answered. */
	async #open(): Promise<void> {
		clearTimeout(this.#timer);
		this.#opening += 1;
		const attempt = this.#opening;
		const token = await session.token().catch(() => null);
		if (!token || !this.#isWanted || attempt !== this.#opening) return;
		if (!this.#socket) this.state = 'connecting';
		const address = new URL(`${base}/ws/`, location.href);
		address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
		const socket = new WebSocket(address, ['bearer', token]);
		socket.onmessage = (it) => {
			this.#heardAt = performance.now();
			const frame = readFrame(it.data);
			if (!frame) return;
			if (frame.type === 'connection_established') {
				if (attempt === this.#opening) this.#established(socket, frame);
				else socket.close();
			} else if (socket === this.#socket) this.#take(frame);
		};
		socket.onclose = (it) => {
			if (attempt !== this.#opening) return;
			this.#socket = null;
			this.state = 'closed';
			if (it.code === 1008) void session.token(true).catch(() => null);
			this.#later();
		};
	}

	#established(socket: WebSocket, frame: Frame): void {
		const old = this.#socket;
		this.#socket = socket;
		this.#failures = 0;
		if (old && old !== socket) old.close();
		const isFirst = this.version === null;
		const version = String(frame.version ?? '');
		this.version ??= version;
		if (this.version !== version) this.isOutdated = true;
		this.storeStopped = typeof frame.store_stopped === 'string' ? frame.store_stopped : null;
		this.storeStoppedCode = frame.store_stopped_code;
		this.state = 'open';
		this.#subscribe(socket);
		// What changed while there was no connection is unknown.
		if (!isFirst && !old) this.#take({ type: 'changed', collections: null });
		this.#emit(frame);
	}

	#take(frame: Frame): void {
		if (frame.type === 'channel_stats') {
			this.stats = readStats(frame);
			this.#statsAt = performance.now();
			this.ageSeconds = 0;
		}
		if (frame.type === 'store_stopped') {
			this.storeStopped = String(frame.reason ?? '');
			this.storeStoppedCode = frame;
		}
		if (frame.type === 'store_resumed') this.storeStopped = null;
		this.#emit(frame);
	}

	#emit(frame: Frame): void {
		for (const handler of this.#handlers.get(frame.type) ?? []) handler(frame);
	}

	#later(): void {
		if (!this.#isWanted || document.hidden) return;
		const pause = BACKOFF_MS[Math.min(this.#failures, BACKOFF_MS.length - 1)] ?? 30_000;
		this.#failures += 1;
		clearTimeout(this.#timer);
		// Not all tabs at the same moment after a restart of the gateway.
		this.#timer = setTimeout(() => void this.#open(), pause * (0.8 + 0.4 * Math.random()));
	}

	#reconnect(): void {
		if (!this.#isWanted || this.#socket || document.hidden) return;
		this.#failures = 0;
		void this.#open();
	}

	#close(): void {
		clearTimeout(this.#timer);
		this.#opening += 1;
		this.#socket?.close();
		this.#socket = null;
		this.state = 'closed';
		this.stats = null;
	}

	#visibilityChanged(): void {
		clearTimeout(this.#hidden);
		if (document.hidden) {
			this.#hidden = setTimeout(() => this.#close(), HIDDEN_MS);
		} else this.#reconnect();
	}

	#tick(): void {
		if (this.stats) this.ageSeconds = Math.floor((performance.now() - this.#statsAt) / 1000);
		if (!this.#socket) return;
		const silent = performance.now() - this.#heardAt;
		if (silent > SILENT_MS) this.#socket.close();
		else if (silent > CHECK_MS && this.#socket.readyState === WebSocket.OPEN)
			this.#socket.send('{"type":"ping"}');
	}
}

export const live = new Live();

/** In a component: calls back for each frame of this type. */
export function onFrame(type: string, handler: (data: Frame) => void): void {
	onDestroy(live.on(type, handler));
}

/**
 * In a component: calls back after records of these collections were written, at most once a second. `null` means that
 * the records are not known.
 */
export function onChanged(collections: string[], handler: (ids: Set<number> | null) => void): void {
	let waiting: Set<number> | null | undefined;
	let timer: ReturnType<typeof setTimeout> | undefined;
	let calledAt = -Infinity;
	const flush = (): void => {
		timer = undefined;
		const ids = waiting;
		if (ids === undefined) return;
		waiting = undefined;
		calledAt = performance.now();
		handler(ids);
	};
	const stop = live.on('changed', (frame) => {
		const ids = changedIds(frame, collections);
		if (ids === undefined) return;
		waiting = ids === null || waiting === null ? null : new Set([...(waiting ?? []), ...ids]);
		timer ??= setTimeout(flush, Math.max(0, calledAt + 1000 - performance.now()));
	});
	onDestroy(() => {
		stop();
		clearTimeout(timer);
	});
}
