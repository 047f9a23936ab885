import type { stateWords } from '../../lib/ui/state';
import type { Texts } from '../catalogue';

export const states: Texts<typeof stateWords> = {
	playing: 'en lecture',
	opening: 'ouverture',
	switching: 'changement',
	resting: 'pause',
	failed: 'en échec',
	full: 'complet',
	idle: 'inactif',
	stopped: 'arrêté',
};
