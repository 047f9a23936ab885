import type { gridText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const grid: Texts<typeof gridText> = {
	keys: 'Flèches pour se déplacer, Entrée pour ouvrir.',
};
