// The groups of the navigation that are closed in this browser.

const KEY = 'headwater.navigation';

/** Returns the names of the closed groups. */
export function closedGroups(): string[] {
	try {
		const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
		return Array.isArray(stored) ? stored.filter((it) => typeof it === 'string') : [];
	} catch {
		return [];
	}
}

/** Remembers the closed groups. Without storage, they are open again when the page is opened anew. */
export function rememberClosed(names: string[]): void {
	try {
		if (names.length > 0) localStorage.setItem(KEY, JSON.stringify(names));
		else localStorage.removeItem(KEY);
	} catch {
		// The choice lasts until the page is closed.
	}
}
