import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { languageFrom, localeFrom } from './language';
import { firstWeekday, firstWeekdayByRegion, inWeekOrder } from './week';

test.each([
	[['de-AT', 'en'], 'de'],
	[['nl', 'fr-CA'], 'fr'],
	[['PT-br'], 'pt'],
	[['ja', 'zh-Hant'], 'en'],
	[[], 'en'],
])('of %j the language is %s', (wanted, language) => expect(languageFrom(wanted)).toBe(language));

test.each([
	['de', ['en-GB', 'de-CH'], 'de-CH'],
	['en', ['en-u-hc-h23'], 'en-u-hc-h23'],
	['pl', ['en-US'], 'pl'],
] as const)('numbers in %s for %j are those of %s', (language, preferred, locale) =>
	expect(localeFrom(language, preferred)).toBe(locale),
);

test.each([
	['en-US', 6],
	['en-GB', 0],
	['de', 0],
	['ar-EG', 5],
	['pt-BR', 6],
])('the week in %s begins on day %i', (locale, day) => {
	expect(firstWeekday(locale)).toBe(day);
	expect(firstWeekdayByRegion(locale)).toBe(day);
});

test('days are listed from the first day of the week', () => {
	const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
	expect(inWeekOrder(days, 'en-US').join()).toBe('sun,mon,tue,wed,thu,fri,sat');
	expect(inWeekOrder(days, 'fr')).toEqual(days);
});

describe('a reader in Germany', () => {
	beforeEach(() => {
		vi.resetModules();
		vi.spyOn(navigator, 'languages', 'get').mockReturnValue(['de-DE', 'en']);
	});
	afterEach(() => vi.restoreAllMocks());

	it('reads numbers, dates and lengths of time as they are written there', async () => {
		const { number, day, joined, clock, plural, pluralForm, ago } = await import('.');
		expect(number(1234.5)).toBe('1.234,5');
		expect(day('2026-03-09T12:00:00')).toBe('9. März 2026');
		expect(clock('2026-03-09T15:04:05')).toBe('15:04:05');
		expect(joined(['A', 'B', 'C'])).toBe('A, B und C');
		expect([plural(1, 'Kanal', 'Kanäle'), plural(2, 'Kanal', 'Kanäle')]).toEqual(['Kanal', 'Kanäle']);
		expect(pluralForm(3, { other: 'viele' })).toBe('viele');
		const at = Date.parse('2026-03-09T15:00:00Z');
		expect(ago('2026-03-09T14:00:00Z', at)).toContain('1 ');
	});
});

describe('a reader in Poland', () => {
	beforeEach(() => {
		vi.resetModules();
		vi.spyOn(navigator, 'languages', 'get').mockReturnValue(['pl']);
	});
	afterEach(() => vi.restoreAllMocks());

	it('reads the form of a word for each number', async () => {
		const { pluralForm } = await import('.');
		const forms = { one: 'kanał', few: 'kanały', many: 'kanałów', other: 'kanału' };
		expect([1, 2, 5, 22, 1.5].map((n) => pluralForm(n, forms))).toEqual([
			'kanał',
			'kanały',
			'kanałów',
			'kanały',
			'kanału',
		]);
	});
});
