// The limits of the processes of a plugin that an admin sets.

import { numberIn, type Plugin } from './model';

/** Names of the limits, with the least and the most that an admin may set. */
export const LIMITS = {
	memory_mib: [16, 65_536],
	cpu_percent: [1, 6_400],
	processes: [1, 16_384],
	open_files: [16, 16_384],
	data_mib: [1, 1_048_576],
} as const;
export type LimitName = keyof typeof LIMITS;
export const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[];

/** Values of the form; `null` is the limit of the manifest. */
export type LimitValues = Record<LimitName, number | null>;

/** Returns the limits that an admin has set. */
export const limitsOf = (it: Pick<Plugin, 'admin_limits'>): LimitValues =>
	Object.fromEntries(LIMIT_NAMES.map((name) => [name, numberIn(it.admin_limits, name)])) as LimitValues;

/** Returns the limit of the manifest; `null` while another one replaces it, because only the one in use is known. */
export const ofManifest = (it: Pick<Plugin, 'admin_limits' | 'limits'>, name: LimitName): number | null =>
	numberIn(it.admin_limits, name) === null ? numberIn(it.limits, name) : null;
