// The keys of a television.

/** What a key does. */
export type Action =
	| 'before'
	| 'after'
	| 'last'
	| 'back'
	| 'forward'
	| 'pause'
	| 'mute'
	| 'fill'
	| 'list'
	| 'info'
	| 'statistics'
	| 'inset'
	| 'captions'
	| 'commit'
	| `type ${string}`;

const KEYS: Record<string, Action> = {
	ArrowUp: 'before',
	ArrowDown: 'after',
	ArrowLeft: 'back',
	ArrowRight: 'forward',
	Backspace: 'last',
	Enter: 'commit',
	' ': 'pause',
	k: 'pause',
	m: 'mute',
	f: 'fill',
	l: 'list',
	i: 'info',
	s: 'statistics',
	p: 'inset',
	c: 'captions',
	'.': 'type .',
};

type Keys = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'defaultPrevented'>;

/**
 * Returns what a key does, `null` for nothing. Keys of one letter, digits and the space bar can be switched off, because
 * speech input may type them by mistake.
 */
export function actionOf(event: Keys, areShortcutsOn: boolean): Action | null {
	if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return null;
	const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
	if (key.length === 1 && !areShortcutsOn) return null;
	return /^\d$/.test(key) ? `type ${key}` : (KEYS[key] ?? null);
}

/** Returns whether a button, link, field or list at this element takes a key itself. */
export function takesKey(it: EventTarget | null, key: string): boolean {
	if (!(it instanceof Element)) return false;
	if (document.querySelector('dialog[open], [popover]:popover-open')) return true;
	if (it.closest('input, select, textarea, [contenteditable], [role=grid], table')) return true;
	return (key === ' ' || key === 'Enter') && it.closest('button, a, summary') !== null;
}
