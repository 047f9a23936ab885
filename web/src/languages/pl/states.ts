import type { stateWords } from '../../lib/ui/state';
import type { Texts } from '../catalogue';

export const states: Texts<typeof stateWords> = {
	playing: 'gra',
	opening: 'otwieranie',
	switching: 'przełączanie',
	resting: 'pauza',
	failed: 'awaria',
	full: 'pełne',
	idle: 'bezczynny',
	stopped: 'zatrzymany',
};
