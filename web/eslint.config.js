import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

/** Colours belong into `src/styles/tokens.css`. */
const colour = /#[0-9a-f]{3,8}\b(?![^{]*\{)|\b(?:rgb|hsl|oklch)a?\(/i;

const local = {
	rules: {
		'no-colours': {
			meta: { type: 'problem', schema: [] },
			create: (context) => ({
				SvelteStyleElement(node) {
					const text = context.sourceCode.getText(node);
					if (colour.test(text)) context.report({ node, message: 'Use the colours of tokens.css.' });
				},
			}),
		},
	},
};

export default ts.config(
	{ ignores: ['dist/', 'node_modules/', 'src/lib/api/schema.ts'] },
	js.configs.recommended,
	...ts.configs.recommended,
	...svelte.configs.recommended,
	{
		plugins: { local },
		languageOptions: { globals: { ...globals.browser, ...globals.node } },
		rules: {
			'local/no-colours': 'error',
			'svelte/no-at-html-tags': 'error',
			// The content policy refuses the attribute; directives such as `style:width` work.
			'no-restricted-syntax': [
				'error',
				{ selector: 'SvelteAttribute[key.name="style"]', message: 'Use style: directives.' },
			],
			// Links use `to()` of our own router.
			'svelte/no-navigation-without-resolve': 'off',
			'svelte/prefer-svelte-reactivity': 'off',
			'@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
			'no-restricted-globals': ['error', 'event'],
			'no-undef': 'off',
		},
	},
	{
		files: ['**/*.svelte', '**/*.svelte.ts'],
		languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig } },
	},
);
