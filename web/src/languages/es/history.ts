import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/history/text';
import type { Texts } from '../catalogue';

export const history: Texts<typeof text> = {
	intro:
		'Medido cada diez segundos y guardado en esta pasarela: cada cinco minutos durante dos días, cada hora durante 60 días.',
	introNode: (node) =>
		`Medido cada diez segundos en el nodo ${node}, que guarda su propio historial: cada cinco minutos durante dos días, cada hora durante 60 días.`,
	scope: 'Mostrar',
	scopes: {
		gateway: 'Toda la pasarela',
		account: 'Cuenta',
		channel: 'Canal',
		stream: 'Flujo',
		user: 'Usuario',
	},
	choose: {
		account: 'Elija una cuenta para ver su historial.',
		channel: 'Elija un canal para ver su historial.',
		stream: 'Elige un flujo para ver su historial.',
		user: 'Elija un usuario para ver su historial.',
	},
	streams: 'Flujos del canal',
	nobody: 'Nada elegido',
	range: 'Periodo',
	ranges: { '6h': '6 horas', '24h': '24 horas', '7d': '7 días', '60d': '60 días' },
	off: 'El historial está desactivado',
	offText: 'No se guarda nada. Se activa en los ajustes.',
	offUser: 'No se guarda el historial de los usuarios',
	offUserText: 'Las tasas y los espectadores de cada usuario solo se guardan si los ajustes lo indican.',
	toSettings: 'Abrir los ajustes',
	nothing: 'Aún no hay datos',
	nothingText: 'Los primeros valores aparecen al cabo de un minuto.',
	charts: {
		rate: 'Tasa',
		viewers: 'Espectadores',
		slots: 'Conexiones en uso',
		health: 'Tiempo de reproducción',
		failovers: 'Conmutaciones',
		recordings: 'Disco de las grabaciones',
	},
	series: {
		in: 'Recibido',
		out: 'Enviado',
		viewers: 'Media',
		viewersMax: 'Pico',
		slots: 'En uso',
		limit: 'Límite',
		recordings: 'Tamaño',
	},
	highest: (value) => `máximo ${value}`,
	said: (chart, parts) => `${chart}: ${parts}.`,
	seriesSaid: (name, newest, highest) => `${name} ${newest}, como máximo ${highest}`,
	unknown: 'desconocido',
	noLimit: 'sin límite',
	failovers: (n) => `${number(n)} ${plural(n, 'conmutación', 'conmutaciones')}`,
	losses: (n) => `${number(n)} ${plural(n, 'fallo', 'fallos')} de flujos`,
	playing: (share) => `en reproducción el ${share} del tiempo de uso`,
	notUsed: 'sin uso',
	asTable: 'Como tabla',
	time: 'Hora',
};
