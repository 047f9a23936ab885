// Sets the theme that the user chose in this browser.
try {
	var theme = localStorage.getItem('headwater.theme');
	if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
	// Without storage the theme of the system applies.
}
