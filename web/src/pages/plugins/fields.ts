// The settings of a plugin: its fields as the plugin describes them, and the values of a form for them.

/** Stands for a saved password. Sending it back keeps the password. */
export const MASK = '********';

export type FieldKind = 'boolean' | 'number' | 'string' | 'text' | 'select' | 'info' | 'other';
export type Value = boolean | number | string | null;
export type Values = Record<string, Value>;

export interface PluginField {
	/** Empty for some that have no value. */
	id: string;
	label: string;
	kind: FieldKind;
	/** As the plugin writes it. */
	type: string;
	isPassword: boolean;
	hint: string | undefined;
	placeholder: string | undefined;
	/** The value is JSON, because it may be a text, a number, or true or false. */
	options: { value: string; label: string }[];
	default: unknown;
	min: number | undefined;
	max: number | undefined;
	/** Text of a field without a value. */
	text: string;
}

type Members = Record<string, unknown>;

const KINDS: Record<string, FieldKind> = {
	boolean: 'boolean',
	number: 'number',
	string: 'string',
	password: 'string',
	text: 'text',
	select: 'select',
	info: 'info',
};

export const textIn = (members: Members, ...names: string[]): string | undefined =>
	names.map((name) => members[name]).find((it): it is string => typeof it === 'string' && it.trim() !== '');

const numberIn = (members: Members, name: string): number | undefined => {
	const value = members[name];
	return typeof value === 'number' ? value : undefined;
};

const isScalar = (value: unknown): value is string | number | boolean =>
	['string', 'number', 'boolean'].includes(typeof value);

function readOption(option: unknown): { value: string; label: string } | null {
	const isObject = typeof option === 'object' && option !== null;
	const value = isObject ? (option as Members).value : option;
	if (!isScalar(value)) return null;
	return {
		value: JSON.stringify(value),
		label: (isObject && textIn(option as Members, 'label')) || String(value),
	};
}

export function readField(it: Members): PluginField {
	const type = textIn(it, 'type') ?? 'string';
	const id = textIn(it, 'id') ?? '';
	const kind = Object.hasOwn(KINDS, type) ? (KINDS[type] as FieldKind) : 'other';
	const options = Array.isArray(it.options) ? it.options.map(readOption).filter((one) => one !== null) : [];
	return {
		id,
		label: textIn(it, 'label') ?? id,
		// Until the code of the plugin lists options, the value is typed.
		kind: kind === 'select' && options.length === 0 ? 'string' : kind,
		type,
		isPassword: it.input_type === 'password' || type === 'password',
		hint: textIn(it, 'help_text', 'description'),
		placeholder: textIn(it, 'placeholder'),
		options,
		default: it.default ?? undefined,
		min: numberIn(it, 'min'),
		max: numberIn(it, 'max'),
		text: [textIn(it, 'description', 'help_text'), textIn(it, 'value', 'default')].filter(Boolean).join('\n'),
	};
}

/** Returns the value that a form shows for a setting: the saved one, else the default. */
function valueOf(field: PluginField, settings: Members): Value {
	const value = Object.hasOwn(settings, field.id) ? settings[field.id] : field.default;
	switch (field.kind) {
		case 'boolean':
			return value === true;
		case 'number':
			return typeof value === 'number' ? value : null;
		case 'select': {
			const json = JSON.stringify(value ?? null);
			return field.options.some((it) => it.value === json) ? json : null;
		}
		default:
			return typeof value === 'string' ? value : isScalar(value) ? String(value) : '';
	}
}

/** Returns whether a field can be edited here. A type of a newer version can if its value is a text. */
export const isEditable = (field: PluginField, settings: Members): boolean =>
	field.id !== '' &&
	field.kind !== 'info' &&
	(field.kind !== 'other' || typeof (settings[field.id] ?? field.default ?? '') === 'string');

/** Returns the values of the form. */
export const valuesOf = (fields: PluginField[], settings: Members): Values =>
	Object.fromEntries(
		fields.filter((it) => isEditable(it, settings)).map((it) => [it.id, valueOf(it, settings)]),
	);

/** Returns all settings with what was changed. `null` means the default of the field. */
export function settingsOf(fields: PluginField[], settings: Members, changed: Partial<Values>): Members {
	const isSelect = (id: string): boolean => fields.some((it) => it.id === id && it.kind === 'select');
	const sent = Object.entries(changed).map(([id, value]) => [
		id,
		typeof value === 'string' && isSelect(id) ? (JSON.parse(value) as unknown) : value,
	]);
	return { ...settings, ...(Object.fromEntries(sent) as Members) };
}
