/** Shortcuts of one key can be switched off, because speech input may type them by mistake (WCAG 2.1.4). */
const KEY = 'headwater.shortcuts';

export function hasShortcuts(): boolean {
	try {
		return localStorage.getItem(KEY) !== 'off';
	} catch {
		return true;
	}
}

export function setShortcuts(isOn: boolean): void {
	try {
		if (isOn) localStorage.removeItem(KEY);
		else localStorage.setItem(KEY, 'off');
	} catch {
		// Without storage they stay on.
	}
}

/** What a key of the shell opens. */
export type Opens = 'palette' | 'shortcuts' | 'search';

type Keys = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>;

/** Returns what a key opens. Fields take all keys but those of the palette themselves. */
export function shortcut(event: Keys, isInField: boolean, isOn: boolean): Opens | null {
	const withControl = event.ctrlKey || event.metaKey;
	if (withControl && !event.altKey && event.key.toLowerCase() === 'k') return 'palette';
	if (isInField || !isOn || withControl || event.altKey) return null;
	if (event.key === '?') return 'shortcuts';
	return event.key === '/' ? 'search' : null;
}

/** Returns whether keys that are typed at this element are text. */
export const isField = (it: EventTarget | null): boolean =>
	it instanceof HTMLElement && (it.isContentEditable || it.matches('input, select, textarea'));
