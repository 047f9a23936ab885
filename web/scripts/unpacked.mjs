// Checks that each compressed file of a folder contains the file beside it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

const folder = process.argv[2];
for (const name of readdirSync(folder).filter((it) => it.endsWith('.br'))) {
	const packed = brotliDecompressSync(readFileSync(join(folder, name)));
	if (!packed.equals(readFileSync(join(folder, name.slice(0, -3))))) {
		console.error(`${name} does not contain the file beside it`);
		process.exit(1);
	}
}
