import { loadSentences } from '$lib/i18n/gateway.svelte';
import { base } from '../router/base';
import { errorOf, unreachable } from '../api/errors';
import type { components } from '../api/schema';

type User = components['schemas']['UserAccount'];

/** What a form of the sign-in sends. */
export interface Credentials {
	username: string;
	password: string;
	stay_signed_in: boolean;
}

const ROUTE = '/api/accounts/auth/browser/';
/** The part of the life of a token after which it is renewed. */
const RENEW_AT = 0.8;
/** A login lasts at least this long after its last renewal, in milliseconds. One that ends earlier was ended. */
const LOGIN_MS = 24 * 3_600_000;

/** Returns when a token was issued and when it ends, in seconds; `null` if it cannot be read. */
export function lifeOf(token: string): { from: number; until: number } | null {
	try {
		const part = token.split('.')[1] ?? '';
		const claims = JSON.parse(atob(part.replaceAll('-', '+').replaceAll('_', '/'))) as Record<
			string,
			unknown
		>;
		const until = Number(claims.exp);
		const from = Number(claims.iat ?? until - 1800);
		return Number.isFinite(until) && Number.isFinite(from) ? { from, until } : null;
	} catch {
		return null;
	}
}

async function post(path: string, body: unknown): Promise<unknown> {
	let answer: Response;
	try {
		answer = await fetch(base + path, {
			method: 'POST',
			credentials: 'same-origin',
			headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
			body: JSON.stringify(body),
		});
	} catch {
		throw unreachable();
	}
	const text = await answer.text();
	let parsed: unknown = text;
	try {
		parsed = JSON.parse(text);
	} catch {
		// Text of a proxy.
	}
	if (!answer.ok) {
		await loadSentences();
		throw errorOf(answer.status, parsed);
	}
	return parsed;
}

/**
 * Who is signed in. The login is a cookie that no script can read; it is exchanged for an access token, which is kept in
 * memory only and renewed before it ends.
 */
class Session {
	user = $state<User | null>(null);
	/** True until the first renewal has answered. */
	isStarting = $state(true);
	/** True if the login ended while pages were open: a dialog asks for the password, and input stays. */
	hasEnded = $state(false);
	/** Whether the login was ended by somebody, and did not run out. */
	wasEndedElsewhere = $state(false);
	/** Why the first renewal failed. */
	failure = $state<Error | null>(null);

	#access: string | null = null;
	/** When the login was renewed last, in milliseconds since 1970. */
	#renewedAt = 0;
	#renewal: Promise<string | null> | null = null;
	#timer: ReturnType<typeof setTimeout> | undefined;
	#listeners = new Set<() => void>();

	get level(): number {
		if (!this.user) return -1;
		return this.user.is_superuser ? 10 : this.user.user_level;
	}

	get isAdmin(): boolean {
		return this.level >= 10;
	}

	/** Calls back whenever there is a new token, or none any more. */
	onToken(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/** Reads the login of the browser when the page is opened. */
	async start(): Promise<void> {
		this.isStarting = true;
		this.failure = null;
		try {
			if (await this.#renewed()) await this.#readUser();
		} catch (error) {
			this.failure = error instanceof Error ? error : new Error(String(error));
		}
		this.isStarting = false;
	}

	async signIn(username: string, password: string, stay = false): Promise<void> {
		const answer = await post(ROUTE, { username, password, stay_signed_in: stay });
		this.#take(accessOf(answer));
		await this.#readUser();
		this.hasEnded = false;
	}

	async signOut(): Promise<void> {
		await post(`${ROUTE}logout/`, {});
		this.#take(null);
		this.user = null;
		this.hasEnded = false;
	}

	/** Returns an access token, or `null` without a login. `renew` demands a new one. */
	async token(renew = false): Promise<string | null> {
		const life = this.#access ? lifeOf(this.#access) : null;
		const isOver = this.#access !== null && life !== null && life.until * 1000 < Date.now() + 5000;
		if (!renew && !isOver) return this.#access;
		return this.#renewed();
	}

	async #readUser(): Promise<void> {
		const answer = await fetch(`${base}/api/accounts/users/me/`, {
			headers: { Authorization: `Bearer ${this.#access}`, Accept: 'application/json' },
		});
		const body: unknown = await answer.json();
		if (!answer.ok) {
			await loadSentences();
			throw errorOf(answer.status, body);
		}
		this.user = body as User;
	}

	/** Reads the user again, for example after a change of it. */
	async reload(): Promise<void> {
		if (this.#access) await this.#readUser();
	}

	/** Asks for a new token; callers at the same time share one request. */
	#renewed(): Promise<string | null> {
		this.#renewal ??= post(`${ROUTE}renew/`, {})
			.then((answer) => {
				this.#take(accessOf(answer));
				if (!this.#access && this.user) this.#ended();
				return this.#access;
			})
			.finally(() => {
				this.#renewal = null;
			});
		return this.#renewal;
	}

	#ended(): void {
		if (this.hasEnded) return;
		this.wasEndedElsewhere = Date.now() - this.#renewedAt < LOGIN_MS;
		this.hasEnded = true;
	}

	#take(access: string | null): void {
		this.#access = access;
		if (access) this.#renewedAt = Date.now();
		clearTimeout(this.#timer);
		const life = access ? lifeOf(access) : null;
		if (life) {
			// The difference counts, because the clocks of browser and gateway may differ.
			const wait = Math.max(10, (life.until - life.from) * RENEW_AT) * 1000;
			this.#timer = setTimeout(() => void this.#renewed().catch(() => this.#retry()), wait);
		}
		for (const listener of this.#listeners) listener();
	}

	#retry(): void {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => void this.#renewed().catch(() => this.#retry()), 15_000);
	}
}

function accessOf(answer: unknown): string | null {
	const access = (answer as { access?: unknown } | null)?.access;
	return typeof access === 'string' ? access : null;
}

export const session = new Session();
