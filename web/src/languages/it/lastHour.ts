import { number } from '$lib/i18n';
import type { lastHourText } from '../../pages/history/lastHourText';
import type { Texts } from '../catalogue';

export const lastHour: Texts<typeof lastHourText> = {
	title: 'L’ultima ora',
	viewers: 'Spettatori',
	rate: 'Ricevuto e inviato',
	slots: 'Connessioni in uso',
	of: (used, limit) => `${number(used)} di ${number(limit)}`,
	both: (received, sent) => `${received} / ${sent}`,
	said: (title, newest, highest) => `${title}: ${newest}, al massimo ${highest}`,
};
