import { number, texts } from '$lib/i18n';

export const lastHourText = texts('lastHour', {
	title: 'The last hour',
	viewers: 'Viewers',
	rate: 'Received and sent',
	slots: 'Connections in use',
	of: (used: number, limit: number) => `${number(used)} of ${number(limit)}`,
	both: (received: string, sent: string) => `${received} / ${sent}`,
	/** A plot in words: its title, the newest value, and the highest one. */
	said: (title: string, newest: string, highest: string) => `${title}: ${newest}, at most ${highest}`,
});
