import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/activity/text';
import type { Texts } from '../catalogue';

export const activity: Texts<typeof text> = {
	tabs: 'Arten von Aktivität',
	events: 'Ereignisse',
	undo: 'Rückgängig',
	changes: 'Änderungen',
	undoThis: 'Rückgängig machen',
	undoOf: (name) => `Rückgängig machen: ${name}`,
	undone: 'Rückgängig gemacht.',
	noUndo: 'Nichts rückgängig zu machen',
	noUndoText: 'Aktionen an vielen Sendern lassen sich einen Tag lang rückgängig machen.',
	conflict: 'Das lässt sich nicht mehr rückgängig machen, weil sich diese Einträge seitdem geändert haben:',
	conflictTitle: 'Nicht rückgängig gemacht',
	records: (n) => plural(n, '1 Eintrag', `${number(n)} Einträge`),
	noEvents: 'Keine Ereignisse',
	noEventsText: 'Ereignisse seit dem Start des Gateways erscheinen hier.',
	noChanges: 'Noch keine Änderungen',
	noChangesText: 'Änderungen von Admins erscheinen hier.',
	time: 'Zeit',
	event: 'Ereignis',
	channel: 'Sender',
	details: 'Details',
	user: 'Benutzer',
	change: 'Änderung',
	address: 'Adresse',
};
