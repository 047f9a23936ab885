import type { gridText } from '../../lib/list/text';
import type { Texts } from '../catalogue';

export const grid: Texts<typeof gridText> = {
	keys: 'Las flechas mueven, Intro abre.',
};
