import type { stateWords } from '../../lib/ui/state';
import type { Texts } from '../catalogue';

export const states: Texts<typeof stateWords> = {
	playing: 'läuft',
	opening: 'öffnet',
	switching: 'schaltet um',
	resting: 'Wartepause',
	failed: 'gestört',
	full: 'voll',
	idle: 'inaktiv',
	stopped: 'gestoppt',
};
