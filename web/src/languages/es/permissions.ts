import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/permissions/text';
import type { Texts } from '../catalogue';

const users = (n: number) => `${number(n)} ${plural(n, 'usuario', 'usuarios')}`;

export const permissions: Texts<typeof text> = {
	back: 'Usuarios',
	intro:
		'Estos permisos se asignaron antes de tener efecto, o en una importación. No permiten nada hasta que los confirmes.',
	effects: 'Lo que permiten',
	permission: 'Permiso',
	effect: 'Efecto',
	list: 'Usuarios con permisos sin confirmar',
	columns: { user: 'Usuario', permissions: 'Permisos' },
	search: 'Buscar usuarios',
	none: 'Ningún permiso espera tu confirmación',
	noneText: 'Todos los permisos con efecto están confirmados.',
	noMatch: 'Ningún usuario coincide',
	confirm: 'Confirmar',
	confirmAll: (n) => `Confirmar para los ${number(n)}`,
	confirmOf: (name) => `Confirmar los permisos de ${name}`,
	ask: (n) => `¿Confirmar los permisos de ${users(n)}?`,
	askText: 'Tienen efecto de inmediato. Para retirar uno más tarde, quítaselo al usuario.',
	confirmed: (n) => `Confirmado para ${users(n)}.`,
	notice: (n) => `${users(n)} ${plural(n, 'tiene', 'tienen')} permisos que nadie ha confirmado`,
	noticeText: 'No tienen efecto hasta que un administrador los confirme.',
	look: 'Verlos',
};
