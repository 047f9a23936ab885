// What a numbering of channels would do, before it is done.

/** A channel with its number, in thousandths as the gateway stores it. */
export interface Numbered {
	id: number;
	name: string;
	number: number | null;
	/** Whether a refresh gives the channel its number. One that is written by hand stays. */
	isAutomatic: boolean;
}

/** What happens where another channel has a number: its number is left out, it moves up, or it gets a number in exchange. */
export const MODES = ['skip', 'shift', 'swap'] as const;
export type Mode = (typeof MODES)[number];

/** A channel that gets another number. */
export interface NumberChange {
	channel: Numbered;
	to: number;
}

export interface Numbering {
	/** The selected channels in their order, also those that keep their number. */
	selected: NumberChange[];
	/** Other channels that get another number. */
	others: NumberChange[];
	/** Other channels that have one of the consecutive numbers. */
	taken: Numbered[];
}

const ONE = 1000;

export const thousandths = (value: number): number => Math.round(value * ONE);
export const written = (value: number): number => value / ONE;

/** Returns the next larger whole number. */
export const wholeAfter = (value: number): number => (Math.floor(value / ONE) + 1) * ONE;

/**
 * Plans the numbers of the selected channels, from the first number on. `others` are all other channels with a number.
 */
export function planNumbers(
	selected: readonly Numbered[],
	others: readonly Numbered[],
	first: number,
	mode: Mode,
): Numbering {
	const byNumber = new Map(others.flatMap((it) => (it.number === null ? [] : [[it.number, it] as const])));
	const wanted = selected.map((_, n) => first + n * ONE);
	const taken = wanted.flatMap((it) => byNumber.get(it) ?? []);
	if (mode === 'skip') {
		let next = first;
		const changes = selected.map((channel) => {
			while (byNumber.has(next)) next += ONE;
			const to = next;
			next += ONE;
			return { channel, to };
		});
		return { selected: changes, others: [], taken };
	}
	const changes = selected.map((channel, n) => ({ channel, to: first + n * ONE }));
	const moved = mode === 'shift' ? shifted(others, wanted) : swapped(selected, taken, byNumber, wanted);
	return { selected: changes, others: moved, taken };
}

/** Moves the channels that have a wanted number up, and those that they meet, in their order. */
function shifted(others: readonly Numbered[], wanted: readonly number[]): NumberChange[] {
	const used = new Set(wanted);
	const inOrder = others
		.filter((it): it is Numbered & { number: number } => it.number !== null)
		.toSorted((a, b) => a.number - b.number);
	let last = wanted.at(-1) ?? 0;
	const changes: NumberChange[] = [];
	for (const channel of inOrder) {
		if (!used.has(channel.number)) continue;
		last = wholeAfter(last);
		used.add(last);
		changes.push({ channel, to: last });
	}
	return changes;
}

/** Gives channels that have a wanted number those that the selected channels give up, and then the next free ones. */
function swapped(
	selected: readonly Numbered[],
	taken: readonly Numbered[],
	byNumber: ReadonlyMap<number, Numbered>,
	wanted: readonly number[],
): NumberChange[] {
	const used = new Set(wanted);
	const given = selected.flatMap((it) => (it.number === null || used.has(it.number) ? [] : [it.number]));
	let last = wanted.at(-1) ?? 0;
	const kept = new Set(given);
	const isFree = (value: number): boolean => !used.has(value) && !byNumber.has(value) && !kept.has(value);
	return taken.map((channel, n) => {
		const exchanged = given[n];
		if (exchanged !== undefined) return { channel, to: exchanged };
		do last = wholeAfter(last);
		while (!isFree(last));
		used.add(last);
		return { channel, to: last };
	});
}

/** Returns the channels that get another number. */
export const changesOf = ({ selected, others }: Numbering): NumberChange[] =>
	[...selected, ...others].filter((it) => it.channel.number !== it.to);
