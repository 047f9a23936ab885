import { expect, test } from 'vitest';
import { changesOf, planNumbers, thousandths, written, type Mode, type Numbered } from './numbering';

/** Reads channels as `name:number`, or `name` for one without. */
const channels = (text: string): Numbered[] =>
	text
		.split(' ')
		.filter(Boolean)
		.map((it) => {
			const [name = '', number] = it.split(':');
			return {
				id: name.charCodeAt(0),
				name,
				number: number === undefined ? null : thousandths(Number(number)),
				isAutomatic: false,
			};
		});

/** Returns the numbers of all channels after a plan, as `name:number` in the order of the names. */
function after(selected: string, others: string, first: number, mode: Mode): string {
	const [chosen, rest] = [channels(selected), channels(others)];
	const plan = planNumbers(chosen, rest, thousandths(first), mode);
	const to = new Map(changesOf(plan).map((it) => [it.channel.id, it.to]));
	const all = [...chosen, ...rest].map((it) => [it.name, to.get(it.id) ?? it.number] as const);
	const numbers = all.map(([, number]) => number).filter((it) => it !== null);
	expect(new Set(numbers).size, 'no number twice').toBe(numbers.length);
	return all
		.toSorted(([a], [b]) => a.localeCompare(b))
		.map(([name, number]) => `${name}:${number === null ? '' : written(number)}`)
		.join(' ');
}

test.each([
	['a:50 b:51', 'x:3', 1, 'skip', 'a:1 b:2 x:3'],
	['a:50 b:51', 'x:1 y:3', 1, 'skip', 'a:2 b:4 x:1 y:3'],
	['a b', 'x:7', 7, 'skip', 'a:8 b:9 x:7'],
	['a:50 b:51', 'x:1 y:3', 1, 'shift', 'a:1 b:2 x:3 y:4'],
	['a:50 b:51', 'x:2 y:9', 1, 'shift', 'a:1 b:2 x:3 y:9'],
	['a:50', 'x:1 y:1.5 z:2', 1, 'shift', 'a:1 x:2 y:1.5 z:3'],
	['a:2 b:1', 'x:3', 1, 'shift', 'a:1 b:2 x:3'],
	['a:9', 'x:4.5 y:5', 4.5, 'shift', 'a:4.5 x:5 y:6'],
	['a:50 b:51', 'x:1 y:2', 1, 'swap', 'a:1 b:2 x:50 y:51'],
	['a:50 b', 'x:1 y:2 z:3', 1, 'swap', 'a:1 b:2 x:50 y:4 z:3'],
	['a:1 b:50', 'x:2', 1, 'swap', 'a:1 b:2 x:50'],
	['a b', 'x:1 y:2', 1, 'swap', 'a:1 b:2 x:3 y:4'],
	['a:2', 'x:1 y:4', 1, 'swap', 'a:1 x:2 y:4'],
] as const)('%s from %s at %d: %s', (selected, others, first, mode, expected) => {
	expect(after(selected, others, first, mode)).toBe(expected);
});

test('a plan names the channels whose numbers are wanted, whatever happens to them', () => {
	for (const mode of ['skip', 'shift', 'swap'] as const) {
		const plan = planNumbers(channels('a b c'), channels('x:2 y:9'), thousandths(1), mode);
		expect(plan.taken.map((it) => it.name)).toEqual(['x']);
		expect(plan.selected.map((it) => it.channel.name)).toEqual(['a', 'b', 'c']);
	}
});

test('a channel that keeps its number is not changed', () => {
	const plan = planNumbers(channels('a:1 b:9'), [], thousandths(1), 'shift');
	expect(changesOf(plan).map((it) => it.channel.name)).toEqual(['b']);
});
