// What it would do to the numbers of channels to move some of them to another place, before it is done.

import { thousandths, wholeAfter, type Numbered, type NumberChange } from './numbering';

/** `exchange`: the channels between the old and the new place share their numbers. `insert`: the next number behind the channel above; channels that have it move up. */
export const MOVE_MODES = ['exchange', 'insert'] as const;
export type MoveMode = (typeof MOVE_MODES)[number];

/** Returns the list with the channels of `moved`, in their order, behind the channel `after`, or first without one. */
export function reordered(
	list: readonly Numbered[],
	moved: ReadonlySet<number>,
	after: number | null,
): Numbered[] {
	const block = list.filter((it) => moved.has(it.id));
	const rest = list.filter((it) => !moved.has(it.id));
	const at = after === null ? 0 : rest.findIndex((it) => it.id === after) + 1;
	return [...rest.slice(0, at), ...block, ...rest.slice(at)];
}

/** The channels between the first and the last place that changes get the numbers that they have now. `null` if one of them has none. */
export function exchanged(
	list: readonly Numbered[],
	moved: ReadonlySet<number>,
	after: number | null,
): NumberChange[] | null {
	const next = reordered(list, moved, after);
	const isChanged = (it: Numbered, n: number): boolean => it.id !== list[n]?.id;
	const first = next.findIndex(isChanged);
	if (first < 0) return [];
	const last = next.findLastIndex(isChanged);
	const numbers = list.slice(first, last + 1).flatMap((it) => it.number ?? []);
	if (numbers.length <= last - first) return null;
	numbers.sort((a, b) => a - b);
	return next
		.slice(first, last + 1)
		.map((channel, n) => ({ channel, to: numbers[n]! }))
		.filter((it) => it.channel.number !== it.to);
}

/**
 * The moved channels get the whole numbers behind that of the channel above. Channels that have these move up, and those
 * that they meet, until a number is free. `null` if the channel above has no number. `all` are all channels of the gateway.
 */
export function inserted(
	block: readonly Numbered[],
	all: readonly Numbered[],
	above: Numbered | null,
): NumberChange[] | null {
	if (above && above.number === null) return null;
	const moved = new Set(block.map((it) => it.id));
	const holders = new Map(
		all.flatMap((it) => (it.number === null || moved.has(it.id) ? [] : [[it.number, it] as const])),
	);
	let number = above ? wholeAfter(above.number ?? 0) : thousandths(1);
	const waiting = [...block];
	const changes: NumberChange[] = [];
	// The holder of a number waits for the next one, until a number is free.
	for (let n = 0; n < waiting.length; n += 1) {
		const channel = waiting[n]!;
		const holder = holders.get(number);
		if (holder) {
			holders.delete(number);
			waiting.push(holder);
		}
		changes.push({ channel, to: number });
		number = wholeAfter(number);
	}
	return changes.filter((it) => it.channel.number !== it.to);
}

export interface Moves {
	exchange: NumberChange[] | null;
	insert: NumberChange[] | null;
}

/** Plans both ways of moving channels of a list. */
export function planMoves(
	list: readonly Numbered[],
	all: readonly Numbered[],
	moved: ReadonlySet<number>,
	after: number | null,
): Moves {
	const above =
		after === null ? null : (list.find((it) => it.id === after) ?? all.find((it) => it.id === after));
	const block = list.filter((it) => moved.has(it.id));
	return {
		exchange: above === null || list.includes(above!) ? exchanged(list, moved, after) : null,
		insert: above === undefined ? null : inserted(block, all, above),
	};
}

/** Returns the way that changes fewer channels; `null` if there is none. */
export function gentler({ exchange, insert }: Moves): MoveMode | null {
	if (!exchange) return insert ? 'insert' : null;
	return insert && insert.length < exchange.length ? 'insert' : 'exchange';
}
