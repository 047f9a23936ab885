// The hours of the week in which a user may watch: as the form has them, and as the gateway has them.

export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Day = (typeof DAYS)[number];

/** Two times of a day, such as `07:00` and `19:30`. An end at midnight is the end of the day. */
export interface HourRange {
	from: string;
	until: string;
}

export interface HoursTable {
	/** IANA name. */
	time_zone: string;
	days: Record<Day, HourRange[]>;
}

/** Maximum number of ranges of one day, as in the gateway. */
export const RANGES_MAX = 8;
/** The end of a day, which fields for times do not have. */
const DAY_END = '24:00';

const perDay = <T>(value: (day: Day) => T): Record<Day, T> =>
	Object.fromEntries(DAYS.map((day) => [day, value(day)])) as Record<Day, T>;

/** Returns a table to begin with: every day from morning to evening. */
export const newHours = (zone: string): HoursTable => ({
	time_zone: zone,
	days: perDay(() => [{ from: '07:00', until: '19:30' }]),
});

function rangesOf(value: unknown): HourRange[] {
	const texts = Array.isArray(value) ? value.filter((it): it is string => typeof it === 'string') : [];
	return texts.map((it) => {
		const [from = '', until = ''] = it.split('-').map((part) => part.trim());
		return { from, until: until === DAY_END ? '00:00' : until };
	});
}

/** Reads the table of a user; `null` if all hours are allowed. */
export function hoursOf(value: Record<string, unknown> | null | undefined): HoursTable | null {
	if (!value) return null;
	const zone = value.time_zone;
	return { time_zone: typeof zone === 'string' ? zone : '', days: perDay((day) => rangesOf(value[day])) };
}

/** Returns the table as the gateway takes it. */
export function hoursBody(table: HoursTable | null): Record<string, unknown> | null {
	if (table === null) return null;
	const text = ({ from, until }: HourRange): string => `${from}-${until === '00:00' ? DAY_END : until}`;
	return { time_zone: table.time_zone, ...perDay((day) => table.days[day].map(text)) };
}

/** Returns the table with the hours of one day on every day. */
export const likeDay = (table: HoursTable, day: Day): HoursTable => ({
	...table,
	days: perDay(() => table.days[day].map((it) => ({ ...it }))),
});

/** Returns a range for the rest of a day, after those that it has; `null` if there is no room. */
export function nextRange(ranges: readonly HourRange[]): HourRange | null {
	if (ranges.length >= RANGES_MAX) return null;
	const last = ranges.at(-1);
	if (!last) return { from: '07:00', until: '19:30' };
	const end = Number(last.until.slice(0, 2)) + 1;
	if (last.until === '00:00' || Number.isNaN(end) || end > 23) return null;
	return { from: `${String(end).padStart(2, '0')}:00`, until: '00:00' };
}
