/** The theme of this browser. `theme.js` sets it before the first painting. */
export type Theme = 'system' | 'light' | 'dark';

const KEY = 'headwater.theme';

export function theme(): Theme {
	const chosen = document.documentElement.dataset.theme;
	return chosen === 'light' || chosen === 'dark' ? chosen : 'system';
}

export function setTheme(chosen: Theme): void {
	if (chosen === 'system') delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = chosen;
	try {
		if (chosen === 'system') localStorage.removeItem(KEY);
		else localStorage.setItem(KEY, chosen);
	} catch {
		// Without storage the choice lasts until the page is closed.
	}
}
