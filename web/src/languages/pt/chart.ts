import type { chartText } from '../../lib/chart/text';
import type { Texts } from '../catalogue';

export const chart: Texts<typeof chartText> = {
	caption: (lowest, highest) =>
		`Recebido desde que esta página foi aberta, no máximo 5 minutos: de ${lowest} a ${highest}`,
	from: 'há 5 min',
	now: 'agora',
};
