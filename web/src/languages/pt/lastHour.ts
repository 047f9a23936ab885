import { number } from '$lib/i18n';
import type { lastHourText } from '../../pages/history/lastHourText';
import type { Texts } from '../catalogue';

export const lastHour: Texts<typeof lastHourText> = {
	title: 'A última hora',
	viewers: 'Espectadores',
	rate: 'Recebido e enviado',
	slots: 'Conexões em uso',
	of: (used, limit) => `${number(used)} de ${number(limit)}`,
	both: (received, sent) => `${received} / ${sent}`,
	said: (title, newest, highest) => `${title}: ${newest}, no máximo ${highest}`,
};
