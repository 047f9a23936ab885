import { number } from '$lib/i18n';
import type { lastHourText } from '../../pages/history/lastHourText';
import type { Texts } from '../catalogue';

export const lastHour: Texts<typeof lastHourText> = {
	title: 'Die letzte Stunde',
	viewers: 'Zuschauer',
	rate: 'Empfangen und gesendet',
	slots: 'Belegte Verbindungen',
	of: (used, limit) => `${number(used)} von ${number(limit)}`,
	both: (received, sent) => `${received} / ${sent}`,
	said: (title, newest, highest) => `${title}: ${newest}, höchstens ${highest}`,
};
