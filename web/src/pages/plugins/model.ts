// Plugins as the pages show them, and what the dialog before enabling sends.

import { api, ok, type Schemas } from '$lib/api';
import type { Frame } from '$lib/live';

/** What a plugin uses that this gateway does not have, as a look at its code has found it. */
export interface Scan {
	/** Names that the gateway does not offer to plugins, with their places. */
	unsupported: string[];
	/** Python packages that are imported and missing. */
	packages: string[];
	/** Folders that the code names. */
	folders: string[];
	/** Required Python packages that have to be fetched from the network. */
	requirements: string[];
}

/** A stored schedule of an action. */
export interface Schedule {
	/** Unique among those of the same source. */
	id: string;
	action: string;
	cron: string;
	next_run: string | null;
	source?: string;
}

/** Members that an answer may have or lack. */
export interface Findings {
	/** Limits and permissions that this machine does not enforce, as sentences. */
	gaps?: string[];
	/** Those of the gaps that no admin has accepted; without the member, all of them. */
	unaccepted_gaps?: string[];
	/** Read by `scanOf`. */
	scan?: Record<string, unknown> | null;
	/** Python packages that have to be fetched from the network. */
	packages?: string[];
	schedules?: Schedule[];
	/** Events and scheduled runs that wait. */
	waiting_deliveries?: number;
	/** Events and scheduled runs that failed for good. */
	dead_deliveries?: number;
}

export type Plugin = Schemas['Plugin'] & Findings;

export const STATES = [
	'disabled',
	'preparing',
	'starting',
	'ready',
	'busy',
	'idle',
	'stopping',
	'restarting',
	'failed',
] as const;
export type PluginState = (typeof STATES)[number];

/** Returns the state if it is a known one. */
export const stateOf = (name: string): PluginState | undefined => STATES.find((it) => it === name);

export const TONES = {
	disabled: 'neutral',
	preparing: 'info',
	starting: 'info',
	ready: 'good',
	busy: 'info',
	idle: 'neutral',
	stopping: 'info',
	restarting: 'warn',
	failed: 'bad',
} as const satisfies Record<PluginState, string>;

export const readPlugins = async (signal: AbortSignal): Promise<Plugin[]> =>
	(await ok(api.GET('/api/plugins/plugins/', { signal }))).plugins;

/** Returns the plugins with the state that a frame reports. */
export function withState(plugins: Plugin[], frame: Frame): Plugin[] {
	return plugins.map((it) =>
		it.key === frame.key
			? {
					...it,
					state: String(frame.state ?? it.state),
					state_since: typeof frame.since === 'string' ? frame.since : it.state_since,
					runs: Number(frame.runs ?? it.runs),
					waiting_runs: Number(frame.waiting ?? it.waiting_runs),
				}
			: it,
	);
}

/** Returns a number of an object that has it. */
export function numberIn(members: Record<string, unknown> | null | undefined, name: string): number | null {
	const value = members?.[name];
	return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Returns whether an update asks for more than was granted. */
export const waitsForPermissions = (it: Plugin): boolean =>
	!it.enabled && it.granted_permissions !== null && it.additional_permissions.length > 0;

/** Returns the address of help if it leads to a web page. */
export function helpOf(it: Plugin): string | undefined {
	try {
		const url = new URL(it.help_url);
		return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : undefined;
	} catch {
		return undefined;
	}
}

const textsIn = (members: Record<string, unknown>, name: string): string[] => {
	const list = members[name];
	return Array.isArray(list) ? list.filter((it): it is string => typeof it === 'string') : [];
};

/** Returns a name of code, with its place if it has one. */
function placed(it: unknown): string[] {
	if (typeof it === 'string') return [it];
	if (typeof it !== 'object' || it === null) return [];
	const { name, file, line } = it as Record<string, unknown>;
	if (typeof name !== 'string') return [];
	return [typeof file === 'string' ? `${name} (${file}${typeof line === 'number' ? `:${line}` : ''})` : name];
}

/** Returns what a look at the code has found; nothing if nobody looked. */
export function scanOf(it: Plugin): Scan {
	const found = it.scan ?? {};
	return {
		unsupported: [...new Set(Array.isArray(found.unsupported) ? found.unsupported.flatMap(placed) : [])],
		packages: textsIn(found, 'packages'),
		folders: textsIn(found, 'folders'),
		requirements: textsIn(found, 'requirements'),
	};
}

/** Returns the Python packages that have to be fetched from the network. */
export const packagesOf = (it: Plugin): string[] => it.packages ?? scanOf(it).requirements;

/** Returns the gaps that have to be accepted before the plugin is enabled. */
export const newGapsOf = (it: Plugin): string[] => it.unaccepted_gaps ?? it.gaps ?? [];

/** The use of a folder. */
export type FolderUse = 'none' | 'read' | 'write';

const filesOf = (permissions: Record<string, unknown> | null): string[] =>
	Array.isArray(permissions?.files) ? permissions.files.map(String) : [];

/** Returns the folders that an admin may grant besides the declared ones, each with what was granted before. */
export function foldersOf(it: Plugin): Record<string, FolderUse> {
	const declared = new Set(filesOf(it.permissions).map(placeOf));
	const found = scanOf(it).folders.map((folder) => [folder, 'none'] as const);
	const granted = filesOf(it.granted_permissions)
		.filter((file) => file.startsWith('/'))
		.map((file) => [placeOf(file), file.endsWith(':write') ? 'write' : 'read'] as const);
	return Object.fromEntries([...found, ...granted].filter(([folder]) => !declared.has(folder)));
}

const placeOf = (file: string): string => file.replace(/:write$/, '');

/** What an admin has chosen before enabling a plugin. */
export interface Choices {
	acceptsGaps: boolean;
	allowsPackages: boolean;
	folders: Record<string, FolderUse>;
}

/** The body that enables a plugin; newer gateways read more members. */
export type Enabling = Schemas['PluginEnablingRequest'] & {
	accept_gaps?: boolean;
	allowed_packages?: string[];
};

/** Returns the body that enables a plugin with what was chosen. */
export function enablingOf(it: Plugin, choices: Choices): Enabling {
	const folders = Object.entries(choices.folders)
		.filter(([, use]) => use !== 'none')
		.map(([folder, use]) => (use === 'write' ? `${folder}:write` : folder));
	return {
		enabled: true,
		// The version of a plugin without a manifest is what its code reported.
		...(it.legacy ? {} : { version: it.version }),
		...(folders.length > 0 ? { folders } : {}),
		...(newGapsOf(it).length > 0 ? { accept_gaps: choices.acceptsGaps } : {}),
		...(choices.allowsPackages ? { allowed_packages: packagesOf(it) } : {}),
	};
}
