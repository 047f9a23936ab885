import type { text } from '../../pages/activity/text';
import type { Texts } from '../catalogue';
import { counted } from './nouns';

export const activity: Texts<typeof text> = {
	tabs: 'Rodzaje aktywności',
	events: 'Zdarzenia',
	undo: 'Cofnij',
	changes: 'Zmiany',
	undoThis: 'Cofnij',
	undoOf: (name) => `Cofnij: ${name}`,
	undone: 'Cofnięto.',
	noUndo: 'Nie ma czego cofnąć',
	noUndoText: 'Operacje na wielu kanałach można cofnąć przez jeden dzień.',
	conflict: 'Nie można już tego cofnąć, bo te dane zmieniły się od tego czasu:',
	conflictTitle: 'Nie cofnięto',
	records: (n) => counted(n, 'wpis', 'wpisy', 'wpisów', 'wpisu'),
	noEvents: 'Brak zdarzeń',
	noEventsText: 'Tu pojawiają się zdarzenia od uruchomienia bramy.',
	noChanges: 'Jeszcze bez zmian',
	noChangesText: 'Tu pojawiają się zmiany wprowadzone przez administratorów.',
	time: 'Czas',
	event: 'Zdarzenie',
	channel: 'Kanał',
	details: 'Szczegóły',
	user: 'Użytkownik',
	change: 'Zmiana',
	address: 'Adres',
};
