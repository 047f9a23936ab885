import type { chartText } from '../../lib/chart/text';
import type { Texts } from '../catalogue';

export const chart: Texts<typeof chartText> = {
	caption: (lowest, highest) =>
		`Ricevuto da quando la pagina è aperta, al massimo 5 minuti: da ${lowest} a ${highest}`,
	from: '5 min fa',
	now: 'ora',
};
