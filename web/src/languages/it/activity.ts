import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/activity/text';
import type { Texts } from '../catalogue';

export const activity: Texts<typeof text> = {
	tabs: 'Tipi di attività',
	events: 'Eventi',
	undo: 'Annulla',
	changes: 'Modifiche',
	undoThis: 'Annulla',
	undoOf: (name) => `Annulla: ${name}`,
	undone: 'Annullato.',
	noUndo: 'Niente da annullare',
	noUndoText: 'Le operazioni su molti canali si possono annullare per un giorno.',
	conflict: 'Non si può più annullare, perché questi dati sono cambiati nel frattempo:',
	conflictTitle: 'Non annullato',
	records: (n) => plural(n, '1 voce', `${number(n)} voci`),
	noEvents: 'Nessun evento',
	noEventsText: 'Qui compaiono gli eventi dall’avvio del gateway.',
	noChanges: 'Ancora nessuna modifica',
	noChangesText: 'Qui compaiono le modifiche degli amministratori.',
	time: 'Ora',
	event: 'Evento',
	channel: 'Canale',
	details: 'Dettagli',
	user: 'Utente',
	change: 'Modifica',
	address: 'Indirizzo',
};
