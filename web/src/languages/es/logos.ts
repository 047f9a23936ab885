import { bytes, number, plural } from '$lib/i18n';
import type { text } from '../../pages/logos/text';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canales')}`;
const logoCount = (n: number) => `${number(n)} ${plural(n, 'logo', 'logos')}`;

export const logos: Texts<typeof text> = {
	logos: logoCount,
	channels,
	search: 'Buscar logos',
	use: 'Uso',
	uses: { any: 'En uso y sin usar', used: 'Usados por canales', unused: 'Sin usar' },
	columns: { name: 'Nombre', address: 'Dirección', channels: 'Canales' },
	add: 'Añadir logo',
	deleteUnused: 'Eliminar logos sin usar',
	deleteUnusedTitle: '¿Eliminar todos los logos que no usa ningún canal?',
	deleteText: 'Los canales pierden los logos eliminados. Puedes deshacerlo durante un día.',
	deleteMany: (n) => `Eliminar ${logoCount(n)}`,
	question: (action) => `¿${action}?`,
	batches: (n) => `Se pueden eliminar como máximo ${logoCount(n)} a la vez.`,
	emptyTitle: 'Aún no hay logos',
	emptyText: 'Los logos vienen con las listas de reproducción o se añaden aquí.',
	noMatch: 'Ningún logo coincide',
	newTitle: 'Añadir un logo',
	wayLabel: 'Origen del logo',
	ways: { url: 'Dirección', file: 'Archivo' },
	name: 'Nombre',
	nameHint: 'Por defecto, el del archivo.',
	url: 'Dirección de la imagen',
	file: 'Imagen',
	fileHint: (n) => `PNG, JPEG, WebP, GIF o SVG, hasta ${bytes(n)}.`,
	fileMissing: 'Elige un archivo.',
	uploaded: 'subido',
	usedBy: (n) => (n === 0 ? 'No lo usa ningún canal.' : `Lo ${plural(n, 'usa', 'usan')} ${channels(n)}:`),
	saved: 'Guardado.',
	uploading: 'Subiendo',
};
