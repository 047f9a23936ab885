/**
 * What the gateway says, in the language of the user. Its texts come in English, beside a code and values. The sentences of
 * a language are loaded when the first one is needed.
 */
import { dateTime } from './index';
import { language } from './language';

/** The code of a text of the gateway, with the values in it. */
export interface TextCode {
	code: string;
	values?: Record<string, unknown>;
}

const parts = import.meta.glob<{ sentences: Record<string, string> }>('../../languages/*/gateway.ts');
const load = parts[`../../languages/${language}/gateway.ts`];

let sentences = $state.raw<Record<string, string>>({});
let loading: Promise<void> | null = null;

/** Loads the sentences of the language, unless it is English. If they cannot be loaded, English texts are shown. */
export function loadSentences(): Promise<void> {
	loading ??= load
		? load().then(
				(it) => {
					sentences = it.sentences;
				},
				() => {
					loading = null;
				},
			)
		: Promise.resolve();
	return loading;
}

const isCoded = (it: unknown): it is TextCode =>
	typeof it === 'object' && it !== null && 'code' in it && typeof it.code === 'string';

/** Times in ISO 8601, as the gateway writes them. */
const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/;

/** Writes a value of a text, which may be a text with a code of its own. */
function written(value: unknown, known: Record<string, string>): string {
	if (isCoded(value)) return filled(known, value) ?? ('text' in value ? String(value.text) : '');
	const text = typeof value === 'string' ? value : '';
	return TIME.test(text) ? dateTime(text) : text;
}

/** Returns the sentence for a code with its values; `null` for a code that the language does not have. */
export function filled(known: Record<string, string>, { code, values }: TextCode): string | null {
	const sentence = known[code];
	if (sentence === undefined) return null;
	return sentence.replaceAll(/\{(\w+)\}/g, (_, name: string) => written(values?.[name], known)).trim();
}

/** Returns a text of the gateway in the language of the user; in English if its code is not known. */
export function gatewayText(english: string | null | undefined, code: unknown): string {
	if (!isCoded(code)) return english ?? '';
	void loadSentences();
	return filled(sentences, code) ?? english ?? '';
}
