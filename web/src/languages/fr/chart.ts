import type { chartText } from '../../lib/chart/text';
import type { Texts } from '../catalogue';

export const chart: Texts<typeof chartText> = {
	caption: (lowest, highest) =>
		`Reçu depuis l’ouverture de cette page, 5 minutes au plus\u00a0: de ${lowest} à ${highest}`,
	from: 'il y a 5 min',
	now: 'maintenant',
};
