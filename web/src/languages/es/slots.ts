import { number } from '$lib/i18n';
import type { text } from '../../pages/slots/text';
import type { Texts } from '../catalogue';

export const slots: Texts<typeof text> = {
	intro: 'Cada conexión a un proveedor ocupa un lugar en un perfil de cuenta.',
	idle: 'No hay conexiones en uso.',
	none: 'No hay perfiles de cuenta',
	noneText: 'Las conexiones aparecen aquí cuando hay una fuente.',
	addSource: 'Añadir una fuente',
	free: 'libre',
	closing: 'cerrando',
	cooling: (seconds) => `libre en ${seconds} s`,
	unlimited: 'sin límite',
	discovered: (n) => `límite detectado: ${number(n)}`,
	inUse: (used, max) => `${number(used)} de ${number(max)} en uso`,
	used: (n) => `${number(n)} en uso`,
	waiting: 'En espera',
	purposes: { live: '', preview: 'vista previa', trial: 'prueba', vod: 'película o episodio' },
	since: (time) => `desde ${time}`,
	groups: 'Grupos de servidores',
	inactive: 'inactivo',
	all: (n) => `Mostrar los ${number(n)}`,
};
