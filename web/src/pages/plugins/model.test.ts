import { expect, test } from 'vitest';
import { enablingOf, foldersOf, helpOf, scanOf, waitsForPermissions, withState, type Plugin } from './model';

const plugin = (more: Partial<Plugin> = {}): Plugin =>
	({
		key: 'demo',
		version: '1.2.0',
		state: 'disabled',
		state_since: null,
		runs: 0,
		waiting_runs: 0,
		enabled: false,
		legacy: false,
		help_url: '',
		permissions: { files: ['recordings', '/srv/own'] },
		granted_permissions: null,
		additional_permissions: ['API: streams:write'],
		...more,
	}) as Plugin;

const nothing = { acceptsGaps: false, allowsPackages: false, folders: {} };

test('a frame changes the state of its plugin only', () => {
	const frame = { type: 'plugin_state', key: 'demo', state: 'busy', since: 'now', runs: 1, waiting: 2 };
	const [demo, other] = withState([plugin(), plugin({ key: 'other' })], frame);
	expect(demo).toMatchObject({ state: 'busy', state_since: 'now', runs: 1, waiting_runs: 2 });
	expect(other).toMatchObject({ state: 'disabled', runs: 0 });
});

test('only an update waits for more permissions', () => {
	expect(waitsForPermissions(plugin())).toBe(false);
	expect(waitsForPermissions(plugin({ granted_permissions: { api: [] } }))).toBe(true);
	expect(waitsForPermissions(plugin({ granted_permissions: { api: [] }, enabled: true }))).toBe(false);
});

test('help leads to web pages only', () => {
	expect(helpOf(plugin({ help_url: 'https://example.com/help' }))).toBe('https://example.com/help');
	expect(helpOf(plugin({ help_url: 'javascript:alert(1)' }))).toBeUndefined();
	expect(helpOf(plugin())).toBeUndefined();
});

test('folders besides the declared ones begin with what was granted before', () => {
	const scan = { unsupported: [], packages: [], folders: ['/data/a', '/data/b', '/srv/own'] };
	const granted_permissions = { files: ['logos', '/srv/own', '/data/b:write', '/data/c'] };
	expect(foldersOf(plugin({ scan, granted_permissions }))).toEqual({
		'/data/a': 'none',
		'/data/b': 'write',
		'/data/c': 'read',
	});
	expect(foldersOf(plugin())).toEqual({});
});

test('names in the code are shown with their places', () => {
	const unsupported = [
		{ name: 'apps.proxy.live', file: 'plugin.py', line: 3 },
		{ name: 'apps.proxy.live', file: 'plugin.py', line: 3 },
		'django.http',
		7,
	];
	expect(scanOf(plugin({ scan: { unsupported, packages: ['lxml', 1], folders: null } }))).toEqual({
		unsupported: ['apps.proxy.live (plugin.py:3)', 'django.http'],
		packages: ['lxml'],
		folders: [],
		requirements: [],
	});
});

test('enabling sends the version that was read, and what was chosen', () => {
	expect(enablingOf(plugin(), nothing)).toEqual({ enabled: true, version: '1.2.0' });
	expect(enablingOf(plugin({ legacy: true }), nothing)).toEqual({ enabled: true });
	const asks = plugin({ gaps: ['No limit of ports.'], packages: ['requests>=2'] });
	expect(enablingOf(asks, nothing)).toEqual({ enabled: true, version: '1.2.0', accept_gaps: false });
	expect(enablingOf({ ...asks, unaccepted_gaps: [] }, nothing)).not.toHaveProperty('accept_gaps');
	const found = plugin({ scan: { requirements: ['lxml'] } });
	expect(enablingOf(found, { ...nothing, allowsPackages: true })).toMatchObject({
		allowed_packages: ['lxml'],
	});
	const folders = { '/data/a': 'none', '/data/b': 'write', '/data/c': 'read' } as const;
	expect(enablingOf(asks, { acceptsGaps: true, allowsPackages: true, folders })).toEqual({
		enabled: true,
		version: '1.2.0',
		folders: ['/data/b:write', '/data/c'],
		accept_gaps: true,
		allowed_packages: ['requests>=2'],
	});
});
