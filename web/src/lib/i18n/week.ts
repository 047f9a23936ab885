/** The week as a locale counts it. */

/** Regions whose week begins on Sunday or Saturday, for browsers that do not tell. */
const SUNDAY = ['BR', 'CA', 'CO', 'IL', 'IN', 'JP', 'KR', 'MX', 'PE', 'PH', 'PT', 'SA', 'TW', 'US', 'ZA'];
const SATURDAY = ['AE', 'DZ', 'EG', 'IQ', 'IR', 'JO', 'KW', 'QA', 'SY'];
const [MONDAY_INDEX, SATURDAY_INDEX, SUNDAY_INDEX] = [0, 5, 6];

/** A part of `Intl.Locale` that some browsers have, as a function or as a member. */
interface WeekInfo {
	getWeekInfo?: () => { firstDay: number };
	weekInfo?: { firstDay: number };
}

/** Returns the first day of the week by the region of a locale. */
export function firstWeekdayByRegion(locale: string): number {
	const region = new Intl.Locale(locale).maximize().region ?? '';
	if (SUNDAY.includes(region)) return SUNDAY_INDEX;
	return SATURDAY.includes(region) ? SATURDAY_INDEX : MONDAY_INDEX;
}

/** Returns the first day of the week of a locale, from 0, Monday, to 6, Sunday. */
export function firstWeekday(locale: string): number {
	const it = new Intl.Locale(locale) as Intl.Locale & WeekInfo;
	const first = (it.getWeekInfo?.() ?? it.weekInfo)?.firstDay;
	// Here 1 is Monday.
	return first === undefined ? firstWeekdayByRegion(locale) : (first + 6) % 7;
}

/** Returns the days of a week, given from Monday, in the order of a locale. */
export function inWeekOrder<T>(days: readonly T[], locale: string): T[] {
	const first = firstWeekday(locale);
	return [...days.slice(first), ...days.slice(0, first)];
}
