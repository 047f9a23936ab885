import type { stateWords } from '../../lib/ui/state';
import type { Texts } from '../catalogue';

export const states: Texts<typeof stateWords> = {
	playing: 'en emisión',
	opening: 'abriendo',
	switching: 'cambiando',
	resting: 'en pausa',
	failed: 'fallido',
	full: 'lleno',
	idle: 'inactivo',
	stopped: 'detenido',
};
