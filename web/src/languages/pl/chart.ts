import type { chartText } from '../../lib/chart/text';
import type { Texts } from '../catalogue';

export const chart: Texts<typeof chartText> = {
	caption: (lowest, highest) => `Odebrano od otwarcia strony, najwyżej 5 minut: od ${lowest} do ${highest}`,
	from: '5 min temu',
	now: 'teraz',
};
