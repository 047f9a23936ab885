import type { stateWords } from '../../lib/ui/state';
import type { Texts } from '../catalogue';

export const states: Texts<typeof stateWords> = {
	playing: 'no ar',
	opening: 'abrindo',
	switching: 'trocando',
	resting: 'em pausa',
	failed: 'falhou',
	full: 'cheio',
	idle: 'inativo',
	stopped: 'parado',
};
