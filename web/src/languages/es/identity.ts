import { number, plural } from '$lib/i18n';
import type { identityText } from '../../pages/sources/identityText';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} ${plural(n, 'flujo', 'flujos')}`;

export const identity: Texts<typeof identityText> = {
	intro:
		'Los proveedores cambian direcciones, nombres y grupos. Una actualización compara cada entrada de la lista con los flujos conocidos según estas claves, de la primera a la última. Un flujo reconocido conserva sus canales y tus cambios. Una clave solo vale si ninguna otra entrada y ningún otro flujo tienen el mismo valor.',
	keys: 'Claves con las que se reconocen los flujos',
	keyOf: {
		panel_id: ['Número en el panel', 'El número en la dirección de un panel: …/user/password/NUMBER.ts.'],
		address: ['Dirección', 'La dirección completa. Siempre se compara.'],
		bare_address: [
			'Dirección sin su token',
			'Sin las partes que cambian: tokens, fechas de caducidad y el acceso de la fuente.',
		],
		guide_id: ['Id de guía', 'El id en la lista: tvg-id; si no, channel-id; si no, tvc-guide-stationid.'],
		name_and_group: ['Nombre y grupo', 'Los dos juntos, así un nombre puede estar en dos grupos.'],
		name: [
			'Nombre',
			'La clave más débil. Una lista en la que solo coinciden los nombres espera tu decisión.',
		],
	},
	recognises: (n) => `Reconoce ${streams(n)}.`,
	preview: 'Previsualizar una actualización',
	defaultOrder: 'Orden predeterminado',
	saved: 'Guardado. Se aplica en la próxima actualización.',
	read: (n) => `La lista tiene ${number(n)} ${plural(n, 'entrada', 'entradas')}. No se ha cambiado nada.`,
	waits: 'La actualización esperaría tu decisión:',
	counts: 'Flujos tras la actualización',
	count: {
		unchanged: 'quedan como están',
		moved: 'reciben otra dirección',
		updated: 'reciben otro nombre, grupo u otro valor',
		created: 'son nuevos',
		stale: 'ya no están en la lista',
		deleted: 'se eliminan',
		ambiguous: 'podrían ser varias entradas, así que no se usa ninguna',
		leftOut: 'entradas quedan fuera por filtros y grupos',
	},
	lists: 'Flujos cambiados',
	listOf: { moved: 'Otra dirección', updated: 'Cambiados', created: 'Nuevos', missing: 'Faltan' },
	columns: { name: 'Nombre', host: 'Host', key: 'Reconocido por' },
	listed: (n, of) => `Se muestran ${number(n)} de ${streams(of)}.`,
};
