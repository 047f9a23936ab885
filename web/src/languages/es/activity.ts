import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/activity/text';
import type { Texts } from '../catalogue';

export const activity: Texts<typeof text> = {
	tabs: 'Tipos de actividad',
	events: 'Eventos',
	undo: 'Deshacer',
	changes: 'Cambios',
	undoThis: 'Deshacer',
	undoOf: (name) => `Deshacer: ${name}`,
	undone: 'Deshecho.',
	noUndo: 'Nada que deshacer',
	noUndoText: 'Las operaciones con muchos canales se pueden deshacer durante un día.',
	conflict: 'Ya no se puede deshacer, porque estos registros han cambiado desde entonces:',
	conflictTitle: 'No se ha deshecho',
	records: (n) => `${number(n)} ${plural(n, 'registro', 'registros')}`,
	noEvents: 'No hay eventos',
	noEventsText: 'Aquí aparecen los eventos desde el inicio de la pasarela.',
	noChanges: 'Aún no hay cambios',
	noChangesText: 'Aquí aparecen los cambios de los administradores.',
	time: 'Hora',
	event: 'Evento',
	channel: 'Canal',
	details: 'Detalles',
	user: 'Usuario',
	change: 'Cambio',
	address: 'Dirección',
};
