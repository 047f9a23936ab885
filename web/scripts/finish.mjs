// After the build: writes the licences as text, and compresses the files that browsers load.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const assets = new URL('../dist/assets/', import.meta.url).pathname;
/** Smaller files gain nothing. */
const BYTES_MIN = 256;

const source = new URL('../dist/licences.json', import.meta.url).pathname;
const parts = JSON.parse(readFileSync(source, 'utf8'))
	.map(
		({ name, version, identifier, text }) => `${name} ${version} (${identifier})\n\n${(text ?? '').trim()}\n`,
	)
	.sort();
writeFileSync(join(assets, 'licences.txt'), parts.join(`\n${'-'.repeat(72)}\n\n`));
rmSync(source);

for (const name of readdirSync(assets)) {
	const path = join(assets, name);
	if (!/\.(js|css|svg|txt)$/.test(name) || statSync(path).size < BYTES_MIN) continue;
	const params = {
		[constants.BROTLI_PARAM_QUALITY]: 11,
		[constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
	};
	writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path), { params }));
}
