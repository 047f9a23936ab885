import type { stateWords } from '../../lib/ui/state';
import type { Texts } from '../catalogue';

export const states: Texts<typeof stateWords> = {
	playing: 'in onda',
	opening: 'apertura',
	switching: 'cambio',
	resting: 'pausa',
	failed: 'errore',
	full: 'pieno',
	idle: 'inattivo',
	stopped: 'fermo',
};
