import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/lineups/text';
import type { Texts } from '../catalogue';

export const lineups: Texts<typeof text> = {
	add: 'Añadir lista',
	newTitle: 'Añadir una lista de canales',
	emptyTitle: 'Aún no hay listas de canales',
	emptyText:
		'Una lista es una selección de canales para algunos usuarios o para un sintonizador. Sin listas, todos tienen todos los canales.',
	columns: { name: 'Nombre', channels: 'Canales', added: 'Canales nuevos' },
	channels: (n) => `${number(n)} ${plural(n, 'canal', 'canales')}`,
	addsNew: 'se añaden',
	addsNone: 'no se añaden',
	name: 'Nombre',
	description: 'Descripción',
	addNew: 'Incluir los canales nuevos',
	addNewHint: 'Una lista creada sin esto empieza sin canales.',
	showChannels: 'Mostrar sus canales',
	copy: 'Crear una copia',
	copyName: (name) => `${name} (copia)`,
	saved: 'Guardado.',
	deleteTitle: (name) => `¿Eliminar la lista de canales ${name}?`,
	deleteText:
		'Sus canales se mantienen. Los usuarios y sintonizadores de la lista la pierden. No se puede deshacer.',
	deleted: (name) => `Se ha eliminado la lista de canales ${name}.`,
};
