// Plugins and their actions as the forms and filters of integrations offer them.

import { readAction } from '../plugins/actions';
import type { Plugin } from '../plugins/model';
import { text } from './text';

export interface Option {
	value: string;
	label: string;
}

/** Adds the value that is set to options that lack it, such as the key of a deleted plugin. */
const withSet = (options: Option[], set: string): Option[] =>
	set === '' || options.some((it) => it.value === set) ? options : [...options, { value: set, label: set }];

/** Returns the plugins to choose from. Two may have the same name, so a name that is not the key has the key behind it. */
export function pluginOptions(plugins: readonly Plugin[], set = ''): Option[] {
	const labelOf = ({ key, name }: Plugin): string => (name === key || name === '' ? key : `${name} (${key})`);
	return withSet(
		plugins.map((it) => ({ value: it.key, label: labelOf(it) })),
		set,
	);
}

/** Returns the actions of a plugin to choose from. */
export function actionOptions(plugins: readonly Plugin[], key: string, set = ''): Option[] {
	const actions = (plugins.find((it) => it.key === key)?.actions ?? []).map(readAction);
	return withSet(
		actions.filter((it) => it.id !== '').map((it) => ({ value: it.id, label: it.label })),
		set,
	);
}

/** Returns why an action of this plugin would not run; nothing if it would. */
export function pluginHint(plugins: readonly Plugin[], key: string): string | undefined {
	if (key === '') return plugins.length === 0 ? text().noPlugins : undefined;
	const plugin = plugins.find((it) => it.key === key);
	if (!plugin || plugin.missing) return text().pluginMissing;
	return plugin.enabled ? undefined : text().pluginDisabled;
}
