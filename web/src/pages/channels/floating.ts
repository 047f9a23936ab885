// What floats below a cell of a list, whose rows cut off what is larger than they are.

/** Shows an element below, or above, another one, in front of everything. */
export const below =
	(anchor: () => HTMLElement | undefined) =>
	(element: HTMLElement): (() => void) => {
		const place = (): void => {
			const at = anchor()?.getBoundingClientRect();
			if (!at) return;
			const fitsBelow = at.bottom + element.offsetHeight <= innerHeight;
			element.style.top = `${Math.max(0, fitsBelow ? at.bottom : at.top - element.offsetHeight)}px`;
			element.style.left = `${Math.max(4, Math.min(at.left, innerWidth - element.offsetWidth - 4))}px`;
			element.style.minWidth = `${at.width}px`;
		};
		element.showPopover();
		place();
		const size = typeof ResizeObserver === 'undefined' ? null : new ResizeObserver(place);
		size?.observe(element);
		addEventListener('scroll', place, true);
		addEventListener('resize', place);
		return () => {
			size?.disconnect();
			removeEventListener('scroll', place, true);
			removeEventListener('resize', place);
		};
	};
