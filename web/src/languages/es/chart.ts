import type { chartText } from '../../lib/chart/text';
import type { Texts } from '../catalogue';

export const chart: Texts<typeof chartText> = {
	caption: (lowest, highest) =>
		`Recibido desde que se abrió esta página, 5 minutos como máximo: de ${lowest} a ${highest}`,
	from: 'hace 5 min',
	now: 'ahora',
};
