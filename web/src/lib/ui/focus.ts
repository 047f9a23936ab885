/** Gives the focus to the heading of the page if the element that had it is gone, so that the keyboard goes on from there. */
export function focusHeading(): void {
	const active = document.activeElement;
	if (active !== null && active !== document.body) return;
	document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
}
