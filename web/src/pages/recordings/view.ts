// How recordings are shown: as cards, or as a list.

export type View = 'cards' | 'list';

const KEY = 'headwater.recordings';

/** Returns what was chosen in this browser. */
export function chosenView(): View {
	try {
		return localStorage.getItem(KEY) === 'list' ? 'list' : 'cards';
	} catch {
		return 'cards';
	}
}

export function rememberView(view: View): void {
	try {
		if (view === 'list') localStorage.setItem(KEY, view);
		else localStorage.removeItem(KEY);
	} catch {
		// Without storage, the address alone keeps it.
	}
}
