import { expect, test } from 'vitest';
import type { Plugin } from '../plugins/model';
import { actionOptions, pluginHint, pluginOptions } from './plugins';

const plugins = [
	{
		key: 'cleaner',
		name: 'Cleaner',
		enabled: true,
		missing: false,
		actions: [{ id: 'go', label: 'Go' }, {}],
	},
	{ key: 'greeter', name: 'greeter', enabled: false, missing: false, actions: [{ id: 'greet' }] },
	{ key: 'gone', name: '', enabled: true, missing: true, actions: [] },
] as Partial<Plugin>[] as Plugin[];

test('plugins and their actions are offered by their names, and what is set stays', () => {
	expect(pluginOptions(plugins).map((it) => it.label)).toEqual(['Cleaner (cleaner)', 'greeter', 'gone']);
	expect(pluginOptions(plugins, 'gone')).toHaveLength(3);
	expect(pluginOptions(plugins, 'deleted').at(-1)).toEqual({ value: 'deleted', label: 'deleted' });
	expect(actionOptions(plugins, 'cleaner')).toEqual([{ value: 'go', label: 'Go' }]);
	expect(actionOptions(plugins, 'greeter', 'old').map((it) => it.label)).toEqual(['greet', 'old']);
	expect(actionOptions(plugins, 'deleted')).toEqual([]);
});

test.each([
	['cleaner', undefined],
	['greeter', 'The plugin is disabled. Enable it to run its actions.'],
	['gone', 'The plugin is not installed.'],
	['deleted', 'The plugin is not installed.'],
	['', undefined],
])('the hint at the plugin %o', (key, hint) => {
	expect(pluginHint(plugins, key)).toBe(hint);
});

test('without plugins, the form says so', () => {
	expect(pluginHint([], '')).toBe('No plugin is installed.');
});
