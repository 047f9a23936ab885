import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const css = readFileSync('src/styles/tokens.css', 'utf8');

/** Returns the colours of a token: light and dark. */
function colours(name: string): [string, string] {
	const found = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css);
	if (!found?.[1] || !found[2]) throw new Error(`no colour --${name}`);
	return [found[1], found[2]];
}

function luminance(colour: string): number {
	const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
	const [r = 0, g = 0, b = 0] = parts.map((it) =>
		it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4,
	);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
	const [high = 0, low = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
	return (high + 0.05) / (low + 0.05);
}

const SURFACES = ['surface', 'surface-raised', 'surface-hover', 'surface-sunken'];
const pairs: [string, string, number][] = [
	...['text', 'text-muted', 'text-link', 'good', 'warn', 'bad', 'info', 'idle'].flatMap((text) =>
		['surface', 'surface-raised', 'surface-hover'].map((it): [string, string, number] => [text, it, 4.5]),
	),
	...['text', 'text-muted'].map((it): [string, string, number] => [it, 'surface-sunken', 4.5]),
	...['text', 'text-muted'].map((it): [string, string, number] => [it, 'surface-selected', 4.5]),
	...['good', 'warn', 'bad', 'info'].flatMap((it): [string, string, number][] => [
		[it, `${it}-soft`, 4.5],
		['text', `${it}-soft`, 4.5],
		['text-muted', `${it}-soft`, 4.5],
	]),
	...['series-1', 'series-2', 'series-3'].flatMap((it): [string, string, number][] => [
		[it, 'surface', 3],
		[it, 'surface-raised', 3],
	]),
	['accent-text', 'accent', 4.5],
	['accent-text', 'accent-hover', 4.5],
	['text', 'accent-soft', 4.5],
	...SURFACES.flatMap((it): [string, string, number][] => [
		['line-strong', it, 3],
		['accent', it, 3],
	]),
];

test.each(pairs)('%s on %s has a contrast of at least %d in both themes', (text, surface, least) => {
	const [one, other] = [colours(text), colours(surface)];
	for (const theme of [0, 1] as const)
		expect(contrast(one[theme], other[theme])).toBeGreaterThanOrEqual(least);
});
