import { number } from '$lib/i18n';
import type { lastHourText } from '../../pages/history/lastHourText';
import type { Texts } from '../catalogue';

export const lastHour: Texts<typeof lastHourText> = {
	title: 'La dernière heure',
	viewers: 'Spectateurs',
	rate: 'Reçu et envoyé',
	slots: 'Connexions utilisées',
	of: (used, limit) => `${number(used)} sur ${number(limit)}`,
	both: (received, sent) => `${received} / ${sent}`,
	said: (title, newest, highest) => `${title} : ${newest}, au plus ${highest}`,
};
