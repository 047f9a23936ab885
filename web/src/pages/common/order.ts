// Orders that people change.

/** Moves the item at `from` so that it is at `to` afterwards. Positions beyond the ends are the ends. */
export function moved<T>(items: readonly T[], from: number, to: number): T[] {
	if (from < 0 || from >= items.length) return [...items];
	const rest = items.filter((_, n) => n !== from);
	const at = Math.max(0, Math.min(rest.length, to));
	return [...rest.slice(0, at), items[from]!, ...rest.slice(at)];
}

export function isSameOrder(a: readonly number[], b: readonly number[]): boolean {
	return a.length === b.length && a.every((it, n) => it === b[n]);
}
