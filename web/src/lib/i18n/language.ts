/** The language of the interface. It is chosen before anything is shown; another choice loads the page again. */
import type { Catalogue } from '../../languages/catalogue';

/** The languages of the interface, each by its own name. */
export const LANGUAGES = {
	en: 'English',
	de: 'Deutsch',
	es: 'Español',
	fr: 'Français',
	it: 'Italiano',
	pl: 'Polski',
	pt: 'Português',
} as const;

/** Code of a language of the interface. */
export type Language = keyof typeof LANGUAGES;

const KEY = 'headwater.language';
/** Languages that are written from right to left. The layout follows `dir` of the document. */
const RIGHT_TO_LEFT = ['ar', 'fa', 'he', 'ur'];

const catalogues = import.meta.glob<{ default: Catalogue }>('../../languages/*/index.ts');

const isLanguage = (code: string): code is Language => code in LANGUAGES;
const baseOf = (locale: string): string => locale.split('-')[0]?.toLowerCase() ?? '';

/** Returns the first of the wanted locales that the interface has, without its region; else English. */
export function languageFrom(wanted: readonly string[]): Language {
	return wanted.map(baseOf).find(isLanguage) ?? 'en';
}

/** Returns the locale of numbers and times: the reader's own one if it is of this language, such as `de-AT`. */
export function localeFrom(language: Language, preferred: readonly string[]): string {
	return preferred.find((it) => baseOf(it) === language) ?? language;
}

/** Returns the language that was chosen in this browser; none: the first one of the browser applies. */
export function chosenLanguage(): Language | null {
	try {
		const chosen = localStorage.getItem(KEY);
		return chosen && isLanguage(chosen) ? chosen : null;
	} catch {
		return null;
	}
}

/** Keeps the choice of a language in this browser; `null` follows the browser. It applies when the page is loaded again. */
export function chooseLanguage(chosen: Language | null): void {
	try {
		if (chosen) localStorage.setItem(KEY, chosen);
		else localStorage.removeItem(KEY);
	} catch {
		// Without storage the language of the browser applies.
	}
}

export const language: Language = chosenLanguage() ?? languageFrom(navigator.languages);
export const locale: string = localeFrom(language, navigator.languages);

let catalogue: Partial<Record<string, unknown>> = {};

/** Loads the texts of the language. If they cannot be loaded, the page is in English. */
export async function loadLanguage(): Promise<void> {
	const load = catalogues[`../../languages/${language}/index.ts`];
	try {
		if (load) catalogue = { ...(await load()).default };
		document.documentElement.lang = load ? language : 'en';
	} catch {
		document.documentElement.lang = 'en';
	}
	document.documentElement.dir = RIGHT_TO_LEFT.includes(language) ? 'rtl' : 'ltr';
}

/** Returns a function that returns the texts with this key in the language of the user. */
export function texts<T>(key: keyof Catalogue, english: T): () => T {
	return () => (catalogue[key] as T | undefined) ?? english;
}
