import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { lifeOf, session } from './session.svelte';

const token = (lifetime: number): string => {
	const iat = Math.floor(Date.now() / 1000);
	return `x.${btoa(JSON.stringify({ iat, exp: iat + lifetime }))}.y`;
};

const json = (body: unknown, status = 200): Response => new Response(JSON.stringify(body), { status });

describe('session', () => {
	let asked: string[];
	let answers: Record<string, () => Response>;

	beforeEach(() => {
		vi.useFakeTimers();
		asked = [];
		answers = {};
		vi.stubGlobal('fetch', async (input: string) => {
			asked.push(input);
			const answer = answers[input];
			if (!answer) throw new TypeError('no network');
			return answer();
		});
	});

	afterEach(() => {
		vi.useRealTimers();
		vi.unstubAllGlobals();
	});

	const RENEW = '/api/accounts/auth/browser/renew/';
	const ME = '/api/accounts/users/me/';
	const anna = { username: 'anna', user_level: 10, is_superuser: false };

	test('a token tells how long it lives', () => {
		const life = lifeOf(token(1800));
		expect(life && life.until - life.from).toBe(1800);
		expect(lifeOf('nonsense')).toBeNull();
	});

	test('a browser with a login is signed in, and its token is renewed at 80 percent of its life', async () => {
		answers = { [RENEW]: () => json({ access: token(1000) }), [ME]: () => json(anna) };
		await session.start();
		expect([session.isAdmin, session.isStarting]).toEqual([true, false]);
		asked = [];
		await vi.advanceTimersByTimeAsync(799_000);
		expect(asked).toEqual([]);
		await vi.advanceTimersByTimeAsync(2000);
		expect(asked).toEqual([RENEW]);
	});

	test('callers at the same time share one renewal', async () => {
		answers = { [RENEW]: () => json({ access: token(1000) }) };
		await Promise.all([session.token(true), session.token(true), session.token(true)]);
		expect(asked).toEqual([RENEW]);
	});

	test('a login that has ended asks for the password, and the user stays', async () => {
		answers = { [RENEW]: () => json({ access: token(1000) }), [ME]: () => json(anna) };
		await session.start();
		answers = { [RENEW]: () => json({ access: null }) };
		expect(await session.token(true)).toBeNull();
		expect([session.hasEnded, session.user?.username]).toEqual([true, 'anna']);
		answers = { '/api/accounts/auth/browser/': () => json({ access: token(1000) }), [ME]: () => json(anna) };
		await session.signIn('anna', 'secret');
		expect(session.hasEnded).toBe(false);
	});

	test('a login that was ended elsewhere is told from one that ran out', async () => {
		const HOUR_MS = 3_600_000;
		for (const [hours, isElsewhere] of [
			[0.5, true],
			[25, false],
		] as const) {
			answers = {
				'/api/accounts/auth/browser/': () => json({ access: token(100 * 3600) }),
				[ME]: () => json(anna),
			};
			await session.signIn('anna', 'secret');
			vi.setSystemTime(Date.now() + hours * HOUR_MS);
			answers = { [RENEW]: () => json({ access: null }) };
			await session.token(true);
			expect([session.hasEnded, session.wasEndedElsewhere]).toEqual([true, isElsewhere]);
		}
	});

	test('a refused login says why', async () => {
		answers = { '/api/accounts/auth/browser/': () => json({ detail: 'Wrong user name or password.' }, 401) };
		await expect(session.signIn('anna', 'x')).rejects.toMatchObject({
			status: 401,
			message: 'Wrong user name or password.',
		});
	});
});
