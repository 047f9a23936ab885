import { texts } from '$lib/i18n';

export const chartText = texts('chart', {
	caption: (lowest: string, highest: string) =>
		`Received since this page was opened, at most 5 minutes: ${lowest} to ${highest}`,
	from: '5 min ago',
	now: 'now',
});
