/** Texts, and numbers and times as people write them. English is the only language so far. */

/** A language of the interface. */
export type Language = 'en';

const language: Language = 'en';

/** Returns a function that returns the texts in the language of the user. */
export function texts<T>(all: { en: T } & Partial<Record<Language, T>>): () => T {
	return () => all[language] ?? all.en;
}

export const common = texts({
	en: {
		save: 'Save',
		cancel: 'Cancel',
		close: 'Close',
		delete: 'Delete',
		edit: 'Edit',
		add: 'Add',
		retry: 'Retry',
		undo: 'Undo',
		notUndone: (reason: string) => `Not undone: ${reason}`,
		search: 'Search',
		show: 'Show',
		hide: 'Hide',
		copy: 'Copy',
		copied: 'Copied',
		yes: 'Yes',
		no: 'No',
		none: 'None',
		hidden: '••••••••',
		noNumber: 'Enter a number.',
		all: 'All',
		loading: 'Loading',
		more: 'More',
		back: 'Back',
		next: 'Next',
		done: 'Done',
		name: 'Name',
		changedMeanwhile:
			'Somebody else has saved this meanwhile. Save again to overwrite it with your version, or take theirs.',
		ownVersion: 'Yours',
		savedVersion: 'Saved',
		useSaved: 'Take the saved value',
	},
});

const decimal = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
const clockFormat = new Intl.DateTimeFormat(language, {
	hour: '2-digit',
	minute: '2-digit',
	second: '2-digit',
	hourCycle: 'h23',
});
const dayFormat = new Intl.DateTimeFormat(language, { year: 'numeric', month: 'short', day: 'numeric' });
const dateTimeFormat = new Intl.DateTimeFormat(language, {
	dateStyle: 'medium',
	timeStyle: 'short',
	hourCycle: 'h23',
});
const listFormat = new Intl.ListFormat(language, { type: 'conjunction' });

export const number = (n: number): string => decimal.format(n);
export const percent = (fraction: number): string => `${whole.format(fraction * 100)} %`;
export const plural = (n: number, one: string, other: string): string => (n === 1 ? one : other);
export const joined = (list: string[]): string => listFormat.format(list);

/** Writes a number with the largest unit that leaves at least one. */
function scaled(n: number, step: number, units: string[]): string {
	let rest = n;
	let unit = 0;
	while (rest >= step && unit < units.length - 1) {
		rest /= step;
		unit += 1;
	}
	return `${(rest < 10 ? decimal : whole).format(rest)} ${units[unit]}`;
}

export const bytes = (n: number): string => scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
/** Writes a rate in kilobits per second. */
export const kbps = (n: number): string => scaled(n, 1000, ['kbit/s', 'Mbit/s', 'Gbit/s']);

/** Writes seconds with the two largest units, such as `2 h 5 min`. */
export function duration(seconds: number): string {
	const s = Math.max(0, Math.floor(seconds));
	const parts: [number, string][] = [
		[Math.floor(s / 86_400), 'd'],
		[Math.floor(s / 3600) % 24, 'h'],
		[Math.floor(s / 60) % 60, 'min'],
		[s % 60, 's'],
	];
	const first = parts.findIndex(([n]) => n > 0);
	if (first < 0) return '0 s';
	return parts
		.slice(first, first + 2)
		.filter(([n]) => n > 0)
		.map(([n, unit]) => `${n} ${unit}`)
		.join(' ');
}

/** Writes milliseconds: `850 ms`, `1.2 s`, `2 min 5 s`. */
export function millis(ms: number): string {
	if (ms < 1000) return `${whole.format(ms)} ms`;
	return ms < 60_000 ? `${decimal.format(ms / 1000)} s` : duration(ms / 1000);
}

/** Applies a format to a time in ISO 8601; other texts stay as they are. */
function formatted(format: Intl.DateTimeFormat, iso: string): string {
	const at = new Date(iso);
	return Number.isNaN(at.getTime()) ? iso : format.format(at);
}

export const clock = (iso: string): string => formatted(clockFormat, iso);
export const day = (iso: string): string => formatted(dayFormat, iso);
export const dateTime = (iso: string): string => formatted(dateTimeFormat, iso);

/** Writes how long ago a time was, to the minute: `just now`, `5 min ago`, `in 2 d 3 h`. */
export function ago(iso: string, now = Date.now()): string {
	const seconds = (now - new Date(iso).getTime()) / 1000;
	if (Number.isNaN(seconds)) return iso;
	if (Math.abs(seconds) < 60) return 'just now';
	const text = duration(Math.floor(Math.abs(seconds) / 60) * 60);
	return seconds > 0 ? `${text} ago` : `in ${text}`;
}
