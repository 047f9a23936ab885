/**
 * Where the rows of a list are in its scroll region. Browsers limit the height of an element (Firefox 17,895,697 px), so
 * the region of a long list is not as high as its rows: its scroll position is mapped to theirs.
 */
export interface Window {
	/** The first row to write, and the one after the last. */
	from: number;
	until: number;
	/** Distance of row `from` from the upper edge of the region, in pixels of the region. */
	offset: number;
}

/** Greatest height of a scroll region, in pixels. */
export const REGION_PX_MAX = 8_000_000;
/** Rows that are written above and below those that show. */
export const MARGIN_ROWS = 8;

/** Returns the height of the region for these rows. */
export const regionHeight = (count: number, row: number): number => Math.min(count * row, REGION_PX_MAX);

/** Returns the position among all rows, in pixels, for a scroll position of the region. */
export function positionOf(scrollTop: number, count: number, row: number, view: number): number {
	const all = count * row;
	const region = regionHeight(count, row);
	if (all <= region || region <= view) return scrollTop;
	return (Math.min(scrollTop, region - view) / (region - view)) * (all - view);
}

/** Returns the scroll position of the region at which a position among all rows is at the top. */
export function scrollTopOf(position: number, count: number, row: number, view: number): number {
	const all = count * row;
	const region = regionHeight(count, row);
	if (all <= region || region <= view) return position;
	return (Math.min(Math.max(0, position), all - view) / (all - view)) * (region - view);
}

/** Returns the rows to write at this scroll position. */
export function windowAt(
	scrollTop: number,
	count: number,
	row: number,
	view: number,
	margin = MARGIN_ROWS,
): Window {
	const position = positionOf(scrollTop, count, row, view);
	const from = Math.max(0, Math.floor(position / row) - margin);
	const until = Math.min(count, Math.ceil((position + view) / row) + margin);
	return { from: Math.min(from, until), until, offset: Math.round(scrollTop - position + from * row) };
}

/** Returns the position that brings a row into view, or `null` if it shows already. `head` is covered at the top. */
export function revealing(
	index: number,
	position: number,
	row: number,
	view: number,
	head: number,
): number | null {
	if (index * row < position) return index * row;
	const below = (index + 1) * row + head;
	return below > position + view ? below - view : null;
}
