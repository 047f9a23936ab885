import { number, plural } from '$lib/i18n';
import type { storageText } from '../../pages/recordings/storageText';
import type { Texts } from '../catalogue';

const none = 'Vacío: sin límite.';

export const recordingStorage: Texts<typeof storageText> = {
	title: 'Almacenamiento',
	limitsTitle: 'Límites',
	limitsText:
		'De las grabaciones terminadas, se eliminan primero las más antiguas. Las protegidas se mantienen.',
	limits: {
		quota_bytes: ['Tamaño de todas las grabaciones, en GiB', none],
		user_quota_bytes: ['Tamaño de las grabaciones de cada usuario, en GiB', none],
		retention_free_bytes: ['Espacio que se mantiene libre en el disco, en GiB', none],
		retention_days: ['Días que se conservan las grabaciones', 'Vacío: mientras haya espacio.'],
		retention_count: ['Grabaciones que se conservan', none],
	},
	saved: 'Guardado.',
	facts: { folder: 'Carpeta', available: 'Espacio libre', used: 'En uso', protected: 'Protegido' },
	unknown: 'desconocido',
	used: (size, n) => `${size}, ${number(n)} ${plural(n, 'grabación', 'grabaciones')}`,
	unmounted: 'La carpeta no está montada',
	unmountedText:
		'Le falta el archivo .headwater-recordings. No se graba ni se elimina nada hasta que vuelva el disco; la lista de grabaciones se mantiene.',
	full: 'El disco está casi lleno',
	fullText:
		'No empieza ninguna grabación. Elimina grabaciones, o define abajo límites que eliminen las antiguas.',
	users: 'Usuarios',
	columns: { user: 'Usuario', recordings: 'Grabaciones', used: 'En uso', quota: 'Límite' },
	nobody: 'sin usuario',
	noQuota: 'sin límite',
	ofQuota: (share, quota) => `${share} de ${quota}`,
	isFull: 'lleno',
	connections: 'Conexiones',
	reserve: 'Minutos antes de una grabación en que se reserva su conexión',
	reserveHint: 'En ese tiempo no la reciben espectadores nuevos. 0: no se reserva.',
	disconnect: 'Las grabaciones pueden desconectar a espectadores',
	disconnectHint: 'Si un programa no obtiene conexión de otro modo.',
	settings: 'Otros ajustes de las grabaciones',
};
