// Limits of what recordings may use, as the form shows them.

import type { Schemas } from '$lib/api';

export type SettingGroup = Schemas['CoreSettings'];

const GIB = 1024 ** 3;

/** Returns a size as forms have it; `null` for 0, which means without limit. */
export const inGib = (bytes: number): number | null =>
	bytes > 0 ? Math.round((bytes / GIB) * 1000) / 1000 : null;

/** Returns the bytes of a size of a form. */
export const fromGib = (gib: number | null): number => Math.round((gib ?? 0) * GIB);

/** Members of the settings that are sizes in bytes. */
const SIZES = ['quota_bytes', 'user_quota_bytes', 'retention_free_bytes'] as const;
/** Members of the settings that are numbers. */
const NUMBERS = ['retention_days', 'retention_count'] as const;

/** The limits in the order of the form. */
export const LIMITS = [...SIZES, ...NUMBERS];
export type Limit = (typeof LIMITS)[number];
/** Sizes are in GiB here; `null` means without limit. */
export type Limits = Record<Limit, number | null>;

const isSize = (name: Limit): boolean => (SIZES as readonly string[]).includes(name);

/** Returns the limits in force. */
export function limitsOf(group: Pick<SettingGroup, 'defaults' | 'value'>): Limits {
	const all = { ...group.defaults, ...group.value } as Record<string, unknown>;
	const of = (name: Limit): number | null => {
		const value = Number(all[name] ?? 0);
		return isSize(name) ? inGib(value) : value || null;
	};
	return Object.fromEntries(LIMITS.map((name) => [name, of(name)])) as Limits;
}

/** Returns the members of the settings for changed limits. */
export function bodyOfLimits(changed: Partial<Limits>): Record<string, number> {
	const entries = Object.entries(changed) as [Limit, number | null][];
	return Object.fromEntries(
		entries.map(([name, value]) => [name, isSize(name) ? fromGib(value) : (value ?? 0)]),
	);
}
