import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Adds the script that sets a chosen theme before the first painting. It is no module, because these wait. */
function themeScript(): Plugin {
	const text = readFileSync(here('src/theme.js'), 'utf8');
	const name = `assets/theme-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.js`;
	let isBuild = false;
	return {
		name: 'theme-script',
		configResolved: (config) => {
			isBuild = config.command === 'build';
		},
		generateBundle() {
			this.emitFile({ type: 'asset', fileName: name, source: text });
		},
		transformIndexHtml: () => [
			{ tag: 'script', attrs: { src: isBuild ? `./${name}` : '/src/theme.js' }, injectTo: 'head' },
		],
	};
}

const gateway = process.env.HEADWATER ?? 'http://127.0.0.1:9191';
const proxied = { target: gateway, changeOrigin: false };

export default defineConfig({
	// The gateway may be below the path of a proxy. It writes that path into `index.html`; scripts find each other.
	base: './',
	plugins: [svelte(), themeScript(), svelteTesting()],
	resolve: { alias: { $lib: here('src/lib') } },
	build: {
		target: 'es2022',
		modulePreload: { polyfill: false },
		assetsInlineLimit: 0,
		reportCompressedSize: false,
		license: { fileName: 'licences.json' },
		manifest: 'manifest.json',
	},
	server: {
		// A test compares the sentences of the languages with the table of the gateway.
		fs: { allow: [here('.'), here('../domain/src/texts')] },
		proxy: { '/api': proxied, '/proxy': proxied, '/ws': { ...proxied, ws: true } },
	},
	test: {
		environment: 'happy-dom',
		include: ['src/**/*.test.ts'],
		setupFiles: ['src/testing/setup.ts'],
	},
});
