// Times as the guide writes them.

import { locale } from '$lib/i18n';

const clockFormat = new Intl.DateTimeFormat(locale, {
	hour: '2-digit',
	minute: '2-digit',
});
const dayFormat = new Intl.DateTimeFormat(locale, { weekday: 'short', day: 'numeric', month: 'short' });

/** Hours and minutes. */
export const clockOf = (time: number | string): string => clockFormat.format(new Date(time));
/** Day of the week, day and month. */
export const dayOf = (time: number | string): string => dayFormat.format(new Date(time));
/** Day and time; of today the time only. */
export const whenOf = (time: string, now: number): string =>
	dayOf(time) === dayOf(now) ? clockOf(time) : `${dayOf(time)}, ${clockOf(time)}`;
