// How recordings are shown: as cards, or as a list.

export type View = 'cards' | 'list';

const KEY = 'headwater.recordings';

/** Returns what was chosen in this browser; `null` if nothing was. */
export function chosenView(): View | null {
	try {
		const stored = localStorage.getItem(KEY);
		return stored === 'list' || stored === 'cards' ? stored : null;
	} catch {
		return null;
	}
}

export function rememberView(view: View): void {
	try {
		localStorage.setItem(KEY, view);
	} catch {
		// Without storage, the address alone keeps it.
	}
}
