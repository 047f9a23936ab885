// Checks the sizes of the built files, compressed with gzip, against the budgets.
import { readFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const dist = new URL('../dist/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('manifest.json', dist), 'utf8'));
const KIB = 1024;

/** Budgets in KiB. A page counts with everything that neither the first load nor the players bring. */
const FIRST = 150;
const PLAYER = 75;
// The smaller build of hls.js has about 118. It loads in a browser in which MPEG-TS or HLS does not play by itself.
const HLS_PLAYER = 125;
const PAGE = 40;
/** The texts of one language other than English, as the gateway sends them: compressed with Brotli. */
const LANGUAGE = 40;
/** What the gateway says in such a language, which loads when the first sentence is needed. */
const SENTENCES = 15;

const sent = (file) => brotliCompressSync(readFileSync(new URL(file, dist))).length;
const size = (file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;

/** Returns the files that load with an entry of the manifest; `deep` follows what it loads on demand. */
function files(key, deep, seen = new Set(), keys = new Set()) {
	if (keys.has(key)) return seen;
	keys.add(key);
	const entry = manifest[key];
	if (!entry) return seen;
	seen.add(entry.file);
	for (const css of entry.css ?? []) seen.add(css);
	for (const next of [...(entry.imports ?? []), ...(deep ? (entry.dynamicImports ?? []) : [])])
		files(next, deep, seen, keys);
	return seen;
}

const pageKeys = Object.keys(manifest).filter(
	(it) => /^src\/pages\/[^/]+\/[^/]+\.svelte$/.test(it) && manifest[it].isDynamicEntry,
);
const pageOf = (key) => key.split('/')[2];
const first = new Set();
const firstKeys = new Set();
files('index.html', false, first, firstKeys);
for (const key of pageKeys)
	if (['now', 'channels'].includes(pageOf(key))) files(key, false, first, firstKeys);

// Parts of the first load are not followed, because the shell names every page.
const player = new Set();
const playerKeys = new Set(firstKeys);
for (const key of Object.keys(manifest))
	if (/^node_modules\/mpegts/.test(key)) files(key, true, player, playerKeys);

const hlsPlayer = new Set();
for (const key of Object.keys(manifest))
	if (/^src\/pages\/watch\/hlsPlayer/.test(key)) files(key, true, hlsPlayer, playerKeys);

const sum = (set) => [...set].reduce((all, it) => all + size(it), 0);
const results = [
	['first load', sum(first), FIRST],
	['player', sum(player), PLAYER],
	['player of HLS', sum(hlsPlayer), HLS_PLAYER],
];
for (const key of pageKeys) {
	const name = pageOf(key);
	if (['now', 'channels'].includes(name)) continue;
	const own = [...files(key, true, new Set(), new Set(playerKeys))].filter((it) => !first.has(it));
	results.push([name, sum(own), PAGE]);
}

for (const key of Object.keys(manifest)) {
	const [, language, part] = /^src\/languages\/([^/]+)\/(index|gateway)\.ts$/.exec(key) ?? [];
	if (language === undefined) continue;
	const own = [...files(key, false)].filter((it) => !first.has(it));
	const [name, budget] =
		part === 'index' ? ['language', LANGUAGE] : ['sentences of the gateway in', SENTENCES];
	results.push([`${name} ${language}`, own.reduce((all, it) => all + sent(it), 0), budget]);
}

let isOver = false;
for (const [name, bytes, budget] of results) {
	const over = bytes > budget * KIB;
	isOver ||= over;
	console.log(
		`${(bytes / KIB).toFixed(1).padStart(7)} KiB of ${String(budget).padStart(3)}  ${name}${over ? '  OVER' : ''}`,
	);
}
process.exit(isOver ? 1 : 0);
