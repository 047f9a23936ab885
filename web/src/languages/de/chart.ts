import type { chartText } from '../../lib/chart/text';
import type { Texts } from '../catalogue';

export const chart: Texts<typeof chartText> = {
	caption: (lowest, highest) =>
		`Empfangen, seit diese Seite offen ist, höchstens 5 Minuten: ${lowest} bis ${highest}`,
	from: 'vor 5 min',
	now: 'jetzt',
};
