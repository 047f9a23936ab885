/** Texts, and numbers and times as people write them. */
import { language, locale, texts } from './language';
import * as week from './week';

export {
	chooseLanguage,
	chosenLanguage,
	LANGUAGES,
	loadLanguage,
	locale,
	texts,
	type Language,
} from './language';

export const common = texts('common', {
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
	justNow: 'just now',
	/** How long ago, from a length such as `5 min`. */
	ago: (length: string) => `${length} ago`,
	/** In how long, from a length such as `5 min`. */
	in: (length: string) => `in ${length}`,
	/** Units of lengths of time, as short as possible. */
	units: { day: 'd', hour: 'h', minute: 'min', second: 's' },
	byteUnits: ['B', 'KiB', 'MiB', 'GiB', 'TiB'],
	showQrCode: 'Show QR code',
	hideQrCode: 'Hide QR code',
	language: 'Language',
	likeBrowser: 'Like the browser',
	badStatus: (status: number) => `The gateway answered with status ${status}.`,
	unreachable: 'The gateway cannot be reached. Check that it runs, and the network.',
});

const decimal = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const clockFormat = new Intl.DateTimeFormat(locale, {
	hour: '2-digit',
	minute: '2-digit',
	second: '2-digit',
});
const dayFormat = new Intl.DateTimeFormat(locale, { year: 'numeric', month: 'short', day: 'numeric' });
const dateTimeFormat = new Intl.DateTimeFormat(locale, {
	dateStyle: 'medium',
	timeStyle: 'short',
});
const listFormat = new Intl.ListFormat(locale, { type: 'conjunction' });

export const number = (n: number): string => decimal.format(n);
export const percent = (fraction: number): string => `${whole.format(fraction * 100)} %`;

const plurals = new Intl.PluralRules(language);

/** Returns the form for a number in a language with two forms, such as `1 stream` and `2 streams`. */
export const plural = (n: number, one: string, other: string): string =>
	plurals.select(n) === 'one' ? one : other;

/** Returns the form for a number in a language with more forms; `other` stands for a form that is absent. */
export const pluralForm = (
	n: number,
	forms: Partial<Record<Intl.LDMLPluralRule, string>> & { other: string },
): string => forms[plurals.select(n)] ?? forms.other;

/** Returns the days of a week, given from Monday, in the order of the reader. */
export const inWeekOrder = <T>(days: readonly T[]): T[] => week.inWeekOrder(days, locale);

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

export const bytes = (n: number): string => scaled(n, 1024, common().byteUnits);
/** Writes a rate in kilobits per second. */
export const kbps = (n: number): string => scaled(n, 1000, ['kbit/s', 'Mbit/s', 'Gbit/s']);

/** Writes seconds with the two largest units, such as `2 h 5 min`. */
export function duration(seconds: number): string {
	const s = Math.max(0, Math.floor(seconds));
	const { units } = common();
	const parts: [number, string][] = [
		[Math.floor(s / 86_400), units.day],
		[Math.floor(s / 3600) % 24, units.hour],
		[Math.floor(s / 60) % 60, units.minute],
		[s % 60, units.second],
	];
	const first = parts.findIndex(([n]) => n > 0);
	if (first < 0) return `0 ${units.second}`;
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
	if (Math.abs(seconds) < 60) return common().justNow;
	const text = duration(Math.floor(Math.abs(seconds) / 60) * 60);
	return seconds > 0 ? common().ago(text) : common().in(text);
}
