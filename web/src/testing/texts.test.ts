// Texts are in catalogues: each key in every language, and nothing that people read elsewhere.

import { parse } from 'svelte/compiler';
import { expect, test } from 'vitest';

const components = import.meta.glob<string>('../**/*.svelte', {
	query: '?raw',
	import: 'default',
	eager: true,
});
const sources = import.meta.glob<string>(['../**/*.ts', '!../**/*.test.ts', '!../lib/api/schema.ts'], {
	query: '?raw',
	import: 'default',
	eager: true,
});
const modules = import.meta.glob<Record<string, () => unknown>>([
	'../**/text.ts',
	'../**/*Text.ts',
	'../lib/i18n/index.ts',
	'../lib/ui/state.ts',
]);
const languages = import.meta.glob<{ default: Record<string, unknown> }>('../languages/*/index.ts');

/** The texts in English by their keys. */
async function english(): Promise<Map<string, unknown>> {
	const found = new Map<string, unknown>();
	for (const [path, source] of Object.entries(sources)) {
		if (path.startsWith('../languages/')) continue;
		for (const [, name, key] of source.matchAll(/export const (\w+) = texts(?:<[^(]*>)?\(\s*'(\w+)'/g)) {
			const load = modules[path];
			if (!load) throw new Error(`${path}: name a file of texts \`text.ts\` or \`…Text.ts\``);
			expect(found.has(key ?? ''), `${key} is used twice`).toBe(false);
			found.set(key ?? '', (await load())[name ?? '']?.());
		}
	}
	return found;
}

/** Returns where a translation has another form than the English text. */
function differences(own: unknown, other: unknown, at: string): string[] {
	if (typeof own !== typeof other) return [`${at}: ${typeof own}, but ${typeof other}`];
	if (typeof own === 'string') return own !== '' && other === '' ? [`${at}: empty`] : [];
	if (typeof own !== 'object' || own === null || other === null) return [];
	const [first, second] = [own as Record<string, unknown>, other as Record<string, unknown>];
	const names = new Set([...Object.keys(first), ...Object.keys(second)]);
	return [...names].flatMap((name) => {
		if (!(name in second)) return [`${at}.${name}: not translated`];
		if (!(name in first)) return [`${at}.${name}: not in the English text`];
		return differences(first[name], second[name], `${at}.${name}`);
	});
}

test('each key is one of the catalogue, and the other way round', async () => {
	const listed = [...(sources['../languages/catalogue.ts'] ?? '').matchAll(/^\t(\w+): Texts</gm)];
	expect([...(await english()).keys()].toSorted()).toEqual(listed.map((it) => it[1]).toSorted());
});

test('every language has every text', async () => {
	const own = Object.fromEntries(await english());
	for (const [path, load] of Object.entries(languages)) {
		expect(differences(own, (await load()).default, path.split('/')[2] ?? ''), path).toEqual([]);
	}
});

test.each([
	[{ a: 'x', b: () => 'y' }, { a: 'z', b: () => 'y' }, []],
	[{ a: 'x' }, {}, ['t.a: not translated']],
	[{}, { a: 'x' }, ['t.a: not in the English text']],
	[{ a: { b: 'x' } }, { a: { b: '' } }, ['t.a.b: empty']],
	[['x', 'y'], ['z'], ['t.1: not translated']],
	[{ a: () => 'x' }, { a: 'x' }, ['t.a: function, but string']],
])('the differences of %o and %o', (own, other, found) =>
	expect(differences(own, other, 't')).toEqual(found),
);

const tables = import.meta.glob<string>('../../../domain/src/texts/table.txt', {
	query: '?raw',
	import: 'default',
	eager: true,
});
const sentences = import.meta.glob<{ sentences: Record<string, string> }>('../languages/*/gateway.ts', {
	eager: true,
});

/** The names of the values of the texts of the gateway, by code. */
const gatewayCodes = new Map(
	Object.values(tables).flatMap((table) =>
		[...table.matchAll(/^(\w+) = (.+)$/gm)].map(([, code, template]): [string, string[]] => [
			code ?? '',
			[...(template ?? '').matchAll(/\{(\w+)/g)].map((it) => it[1] ?? ''),
		]),
	),
);

test('every language has a sentence for each code of the gateway, and no other', () => {
	expect(gatewayCodes.size).toBeGreaterThan(300);
	const paths = Object.keys(languages).map((it) => it.replace('index.ts', 'gateway.ts'));
	expect(Object.keys(sentences).toSorted()).toEqual(paths.toSorted());
	for (const [path, own] of Object.entries(sentences)) {
		expect(Object.keys(own.sentences).toSorted(), path).toEqual([...gatewayCodes.keys()].toSorted());
		for (const [code, sentence] of Object.entries(own.sentences)) {
			const unknown = [...sentence.matchAll(/\{(\w*)\}?/g)].filter(
				(it) => !(gatewayCodes.get(code) ?? []).includes(it[1] ?? ''),
			);
			expect([sentence.trim() === '', unknown.map((it) => it[0])], `${path}: ${code}`).toEqual([false, []]);
		}
	}
});

/** Attributes and properties that people read. */
const READ = [
	'alt',
	'aria-description',
	'aria-label',
	'aria-roledescription',
	'aria-valuetext',
	'closes',
	'hint',
	'label',
	'placeholder',
	'submit',
	'text',
	'title',
	'word',
];

/** Texts that are the same in every language, with the reason. */
const SAME: Record<string, string> = {
	'pages/channels/ChannelEditor.svelte: eth0': 'example of an interface',
	'pages/channels/ChannelEditor.svelte: udp://239.1.2.3:5000': 'example of an address',
	'pages/integrations/TemplateEditor.svelte: summary': 'name of a member',
	'pages/now/TimelineView.svelte: HTTP': 'name of a protocol',
	'pages/sources/AccountForm.svelte: MAG250': 'example of a model',
	'pages/sources/NewSource.svelte: 00:1A:79:12:34:56': 'example of an address',
	'pages/sources/guides/GeneratedForm.svelte: NHL 03: Bruins vs Leafs @ 8:00 PM': 'example of a name',
	'pages/sources/guides/GeneratedForm.svelte: UTC': 'name of a time zone',
	'pages/sources/guides/GuidePanel.svelte: UTC': 'name of a time zone',
	'pages/sources/guides/NewGuide.svelte: http://…/guide.xml.gz': 'example of an address',
	'shell/SignIn.svelte: headwater user add admin --superuser': 'a command',
};

interface Node {
	type: string;
	[member: string]: unknown;
}

const isNode = (it: unknown): it is Node => typeof it === 'object' && it !== null && 'type' in it;

/** Returns the strings that an expression may have as its value. */
function values(it: unknown): string[] {
	if (!isNode(it)) return [];
	if (it.type === 'Literal') return typeof it.value === 'string' ? [it.value] : [];
	if (it.type === 'ConditionalExpression') return [it.consequent, it.alternate].flatMap(values);
	if (it.type === 'LogicalExpression' || it.type === 'BinaryExpression') {
		const isText = it.type === 'LogicalExpression' || it.operator === '+';
		return isText ? [it.left, it.right].flatMap(values) : [];
	}
	if (it.type !== 'TemplateLiteral') return [];
	const quasis = (it.quasis as { value: { cooked: string } }[]).map((quasi) => quasi.value.cooked);
	return [...quasis, ...(it.expressions as unknown[]).flatMap(values)];
}

/** Returns the texts below a node of a component. */
function written(it: unknown): string[] {
	if (Array.isArray(it)) return it.flatMap(written);
	if (!isNode(it)) return [];
	if (it.type === 'Text') return [String(it.data)];
	if (it.type === 'ExpressionTag') return values(it.expression);
	if (it.type === 'Attribute') return READ.includes(String(it.name)) ? written(it.value) : [];
	if (it.type.endsWith('Directive') || it.type === 'Comment') return [];
	return Object.entries(it)
		.filter(([name]) => !['expression', 'test', 'key', 'context', 'metadata', 'parent'].includes(name))
		.flatMap(([, member]) => (Array.isArray(member) ? member.flatMap(written) : written(member)));
}

/** Returns what a component writes itself for people. */
const readable = (source: string): string[] =>
	written(parse(source, { modern: true }).fragment)
		.map((it) => it.replaceAll(/\s+/g, ' ').trim())
		.filter((it) => /\p{L}/u.test(it));

test('no component writes text that is not in a catalogue', () => {
	const found = Object.entries(components).flatMap(([path, source]) =>
		readable(source).map((it) => `${path.replace('../', '')}: ${it}`),
	);
	expect([...new Set(found)].toSorted()).toEqual(Object.keys(SAME).toSorted());
});

test.each([
	['<p>Hello</p>', ['Hello']],
	['<p class="a" id="b">{text().hello} · 5</p>', []],
	['<img alt="A picture" src="x.png">', ['A picture']],
	['<Button label="{words.stop} now">{isOn ? "On" : words.off}</Button>', ['now', 'On']],
	['{#if a === "b"}{#each list as it (it.id)}<td>{`of ${it.n}`}</td>{/each}{/if}', ['of']],
	['{#snippet a()}<b>Bold</b>{/snippet}<State state="playing" word={words["x"]} />', ['Bold']],
	['<input type="text" style:width="5rem" autocomplete="off" oninput={() => (a = "b c")} />', []],
])('the texts of %s', (source, texts) => expect(readable(source)).toEqual(texts));

/** Declarations that name a side of the screen. */
const SIDES =
	/^(?:(?:(?:scroll-)?(?:margin|padding)|border)-(?:left|right)(?:-[a-z]+)?|border-(?:top|bottom)-(?:left|right)-radius|left|right) *:|^(?:text-align|float|clear) *: *(?:left|right)\b/;

/** Returns the sides of the screen that the styles of a component name. */
function sides(source: string): string[] {
	const { css } = parse(source, { modern: true });
	const rules = css ? source.slice(css.content.start, css.content.end) : '';
	const directives = [...source.matchAll(/\bstyle:(left|right)\b/g)];
	const properties = rules
		.replaceAll(/\/\*[\s\S]*?\*\//g, '')
		.split(/[;{}]/)
		.map((it) => it.trim())
		.filter((it) => SIDES.test(it));
	return [...properties, ...directives.map((it) => it[0])];
}

/** Styles that follow coordinates of the screen, which are the same in every script. */
const COORDINATES: Record<string, string> = {
	'lib/ui/Menu.svelte: style:left': 'the place comes from a rectangle of the browser',
};

test('styles follow the direction of the script', () => {
	const found = Object.entries(components).flatMap(([path, source]) =>
		sides(source).map((it) => `${path.replace('../', '')}: ${it}`),
	);
	expect(found.toSorted()).toEqual(Object.keys(COORDINATES).toSorted());
});

test.each([
	['<p></p><style>p { margin-left: 1px; }</style>', ['margin-left: 1px']],
	['<p></p><style>p { text-align: right; float: left }</style>', ['text-align: right', 'float: left']],
	['<p></p><style>p { inset-inline-start: 0; text-align: start; }</style>', []],
	['<p style:left="{x}px"></p>', ['style:left']],
	['<p></p><style>@media (width < 9px) { p { left: 0; } }</style>', ['left: 0']],
	['<p></p><style>p { transition: left 1s; }</style>', []],
])('the sides of %s', (source, found) => expect(sides(source)).toEqual(found));
