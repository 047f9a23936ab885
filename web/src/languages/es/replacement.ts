import { number, plural } from '$lib/i18n';
import type { replacementText } from '../../pages/sources/replacementText';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} ${plural(n, 'flujo', 'flujos')}`;
const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canales')}`;
const keyOf = { panel_id: 'Número en el panel', guide_id: 'Id de guía', name: 'Nombre' };

export const replacement: Texts<typeof replacementText> = {
	intro:
		'Pasa los canales de esta fuente a otra, como un proveedor nuevo. Cada flujo se sustituye por el que mejor encaja. Los canales conservan sus números, nombres, favoritos y grabaciones.',
	target: 'Sustituir por',
	choose: 'Elige una fuente',
	noTargets: 'No hay otra fuente',
	noTargetsText: 'Añade el proveedor nuevo como fuente y actualízala; después vuelve aquí.',
	score: 'Puntuación mínima de una pareja en porcentaje',
	scoreHint: 'De 85 a 100. Una más alta deja más flujos como están.',
	preview: 'Vista previa',
	counts: 'Lo que cambiaría',
	count: {
		channels: 'canales reciben flujos de la otra fuente',
		pairs: 'flujos tienen equivalente',
		unpaired: 'flujos no lo tienen y se mantienen',
		removed: 'canales que la otra fuente creó para los mismos flujos se eliminan',
		kept: 'de esos canales se mantienen, porque se cambiaron o están en uso',
	},
	foundBy: (key, n) => `${keyOf[key]}: ${number(n)}`,
	keyOf,
	reasonOf: { no_match: 'Nada encaja', ambiguous: 'Varios encajan igual de bien', excepted: 'Excluido' },
	lists: 'Flujos',
	listOf: { pairs: 'Parejas', unpaired: 'Sin equivalente' },
	columns: {
		name: 'Flujo',
		replacement: 'Sustituido por',
		host: 'Host',
		key: 'Encontrado por',
		score: 'Puntuación',
		reason: 'Motivo',
		channels: 'Canales',
	},
	listed: (n, of) => `Se muestran ${number(n)} de ${streams(of)}.`,
	more: 'Mostrar más',
	nothing: 'Ningún flujo de esta fuente tiene equivalente.',
	leftOut: (n) => `Excluido: ${streams(n)}.`,
	apply: (n) => `Sustituir los flujos de ${channels(n)}`,
	canUndo: 'Puedes deshacerlo durante 24 horas, aquí o en Actividad.',
};
