import { number, plural } from '$lib/i18n';
import type { offersText } from '../../pages/sources/offersText';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canales')}`;

export const offers: Texts<typeof offersText> = {
	intro:
		'La lista de reproducción nombra estas guías. Léelas para ver a cuántos de tus canales serviría cada una y añade las que necesites.',
	emptyTitle: 'La lista no nombra ninguna guía',
	emptyText: 'Las guías con dirección propia se añaden en Fuentes, Guías.',
	readAll: (n) => plural(n, 'Leer la guía', `Leer las ${number(n)} guías`),
	read: 'Leer',
	readOne: (address, n) => `Leer la guía ${n}: ${address}`,
	reading: (n, of) => `Leyendo la guía ${number(n)} de ${number(of)}`,
	stop: 'Detener la lectura',
	add: 'Añadir como fuente',
	addOne: (address, n) => `Añadir la guía ${n} como fuente: ${address}`,
	added: (name) => `Se ha añadido ${name}. Ha empezado su primera actualización.`,
	isAdded: 'añadida',
	open: 'Abrir',
	openOne: (n) => `Abrir la guía ${n}`,
	showAddresses: 'Mostrar direcciones',
	hideAddresses: 'Ocultar direcciones',
	serves: (n, added) =>
		n === 0
			? 'No sirve a ninguno de tus canales'
			: `Sirve a ${channels(n)}, ${added === 0 ? 'todos ya con guía' : `${number(added)} de ellos ahora sin guía`}`,
	inGuide: (n, same) => `${channels(n)} en la guía, ${number(same)} con el mismo id`,
};
