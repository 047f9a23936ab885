// The addresses of a user for players, in the order in which people try them.

import type { Schemas } from '$lib/api';

export type PlayerAddress = Schemas['PlayerAddress'];

/** Returns whether only this machine reaches the address. */
export function isLoopback(url: string): boolean {
	try {
		const host = new URL(url).hostname;
		return host === 'localhost' || host === '[::1]' || host.startsWith('127.') || host.endsWith('.localhost');
	} catch {
		return false;
	}
}

/** Returns the served addresses: those without a header first, because every player takes them. */
export function inOrder(addresses: readonly PlayerAddress[]): {
	plain: PlayerAddress[];
	withHeader: PlayerAddress[];
} {
	const served = addresses.filter((it) => it.is_served && it.kind !== 'xtream');
	return { plain: served.filter((it) => !it.header), withHeader: served.filter((it) => it.header) };
}
