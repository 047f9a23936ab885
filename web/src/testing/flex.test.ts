// A component does not know whether it is in a line or in a column, where the basis of `flex` is its height: search fields
// were 192 px high. The style of a line says how wide the components in it are.

import { parse } from 'svelte/compiler';
import { expect, test } from 'vitest';

const sources = import.meta.glob<string>('../lib/**/*.svelte', {
	query: '?raw',
	import: 'default',
	eager: true,
});

interface Node {
	type: string;
	start: number;
	end: number;
	name: string;
	property: string;
	value: string;
}

const isNode = (it: unknown): it is Node => typeof it === 'object' && it !== null && 'type' in it;
const below = (it: object): unknown[] => Object.values(it).flatMap((member: unknown) => member);

/** Returns all nodes of a type below a node, and itself. */
function nodesOf(type: string, it: unknown): Node[] {
	if (typeof it !== 'object' || it === null) return [];
	return [...(isNode(it) && it.type === type ? [it] : []), ...below(it).flatMap((one) => nodesOf(type, one))];
}

/** Returns the outermost elements of a component, also those in conditions. */
function outermost(it: unknown): Node[] {
	if (typeof it !== 'object' || it === null) return [];
	return isNode(it) && it.type === 'RegularElement' ? [it] : below(it).flatMap(outermost);
}

/** Returns the styles of a component that give its outermost elements a basis with a unit. */
function basesOf(source: string): string[] {
	const { fragment, css } = parse(source, { modern: true });
	const text = (it: Node): string => source.slice(it.start, it.end);
	const names = new Set(
		outermost(fragment).flatMap((it) => {
			const classes = nodesOf('Attribute', (it as unknown as { attributes: unknown }).attributes)
				.filter((attribute) => attribute.name === 'class')
				.flatMap((attribute) => text(attribute).match(/[\w-]+/g) ?? []);
			return [it.name, ...classes];
		}),
	);
	return nodesOf('Rule', css).flatMap((rule) => {
		const { prelude, block } = rule as unknown as { prelude: object; block: object };
		const isOutermost = nodesOf('ComplexSelector', prelude).some((selector) => {
			const last = nodesOf('RelativeSelector', selector).at(-1);
			return ['ClassSelector', 'TypeSelector'].some((type) =>
				nodesOf(type, last).some((it) => names.has(it.name)),
			);
		});
		return nodesOf('Declaration', block)
			.filter(
				(it) => isOutermost && /^flex(-basis)?$/.test(it.property) && /[1-9]\d*(\.\d+)?[a-z%]/.test(it.value),
			)
			.map(text);
	});
}

test('no component of the library has a basis of its own', () => {
	const found = Object.entries(sources).map(([path, source]) => [path, basesOf(source)]);
	expect(found.filter(([, bases]) => bases?.length)).toEqual([]);
});

test.each([
	['<div></div><style>div { flex: 1 1 12rem; }</style>', ['flex: 1 1 12rem']],
	['{#if a}<p class="b c"></p>{/if}<style>.c { flex-basis: 60%; }</style>', ['flex-basis: 60%']],
	['<p></p><style>@media (width < 9px) { p { flex: 1 0 100px; } }</style>', ['flex: 1 0 100px']],
	['<div><p></p></div><style>p { flex: 1 1 12rem; }</style>', []],
	['<div><p></p></div><style>div p { flex: 1 1 12rem; }</style>', []],
	['<div></div><style>div { flex: 1; } div { flex: none; } div { flex: 0 0 auto; }</style>', []],
])('the bases of %s', (source, bases) => expect(basesOf(source)).toEqual(bases));
