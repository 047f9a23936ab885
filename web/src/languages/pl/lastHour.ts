import { number } from '$lib/i18n';
import type { lastHourText } from '../../pages/history/lastHourText';
import type { Texts } from '../catalogue';

export const lastHour: Texts<typeof lastHourText> = {
	title: 'Ostatnia godzina',
	viewers: 'Widzowie',
	rate: 'Odebrano i wysłano',
	slots: 'Używane połączenia',
	of: (used, limit) => `${number(used)} z ${number(limit)}`,
	both: (received, sent) => `${received} / ${sent}`,
	said: (title, newest, highest) => `${title}: ${newest}, najwyżej ${highest}`,
};
