/** Counted nouns. */
import { number, pluralForm } from '$lib/i18n';

/** Returns the form for a number; `other` is for fractions. */
export const forms = (n: number, one: string, few: string, many: string, other = few): string =>
	pluralForm(n, { one, few, many, other });

/** Returns the number with its noun. */
export const counted = (n: number, one: string, few: string, many: string, other = few): string =>
	`${number(n)} ${forms(n, one, few, many, other)}`;

export const nChannels = (n: number): string => counted(n, 'kanał', 'kanały', 'kanałów', 'kanału');
export const nStreams = (n: number): string =>
	counted(n, 'strumień', 'strumienie', 'strumieni', 'strumienia');
export const nGroups = (n: number): string => counted(n, 'grupa', 'grupy', 'grup');
export const nViewers = (n: number): string => counted(n, 'widz', 'widzów', 'widzów', 'widza');
export const nUsers = (n: number): string =>
	counted(n, 'użytkownik', 'użytkowników', 'użytkowników', 'użytkownika');
export const nTitles = (n: number): string => counted(n, 'tytuł', 'tytuły', 'tytułów', 'tytułu');
export const nProgrammes = (n: number): string => counted(n, 'program', 'programy', 'programów', 'programu');
export const nRecordings = (n: number): string => counted(n, 'nagranie', 'nagrania', 'nagrań');
export const nLineups = (n: number): string => counted(n, 'zestaw', 'zestawy', 'zestawów', 'zestawu');
export const nLogos = (n: number): string => `${number(n)} logo`;
