// Moving the channels of an account to another account.

import type { Schemas } from '$lib/api';

export type Replacement = Schemas['AccountReplacement'];
export type StreamPair = Replacement['pairs'][number];
export type Unpaired = Replacement['unpaired'][number];
export type PairKey = StreamPair['paired_by'];
export type UnpairedReason = Unpaired['reason'];

/** The least score of a pair that the gateway accepts, and its default, in percent. */
export const SCORE_MIN = 85;
export const SCORE_MAX = 100;
/** Rows of each list that one request asks for. */
export const ROWS = 200;

/** The values of an account that decide whether it can take the place of another one. */
export type Target = Pick<Schemas['M3UAccount'], 'id' | 'name' | 'is_active' | 'locked'>;

/** Returns the accounts that can take the place of this one, by name. */
export function targetsOf<T extends Target>(accounts: readonly T[], account: number): T[] {
	const others = accounts.filter((it) => it.id !== account && it.is_active && !it.locked);
	return others.toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Returns the score as the gateway accepts it. */
export const scoreOf = (typed: number | null): number =>
	Math.min(SCORE_MAX, Math.max(SCORE_MIN, Math.round(typed ?? SCORE_MIN)));

/** Returns a preview with the rows of the next part of its lists. */
export const withMore = (shown: Replacement, next: Replacement): Replacement => ({
	...next,
	pairs: [...shown.pairs, ...next.pairs],
	unpaired: [...shown.unpaired, ...next.unpaired],
});

/** Returns the hosts of both streams. */
export const hostsOf = (pair: StreamPair): string => `${pair.host ?? '–'} → ${pair.replacement_host ?? '–'}`;
