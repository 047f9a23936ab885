import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/viewers/text';
import type { Texts } from '../catalogue';

const viewerCount = (n: number) => `${number(n)} ${plural(n, 'espectador', 'espectadores')}`;

export const viewers: Texts<typeof text> = {
	count: (n) => viewerCount(n),
	selected: (n, of) => `${number(n)} de ${viewerCount(of)}`,
	stale: (seconds) => `sin actualizar, ${number(seconds)} s`,
	search: 'Buscar usuario, dispositivo, dirección, canal o programa',
	kind: 'Qué',
	anyKind: 'todo',
	kinds: { live: 'canales en directo', title: 'películas y series', past: 'canales en diferido' },
	format: 'Formato',
	any: 'cualquiera',
	node: 'Nodo',
	columns: {
		user: 'Usuario',
		device: 'Dispositivo',
		address: 'Dirección',
		name: 'Ve',
		seconds: 'Desde',
		rate: 'Tasa',
		lost: 'Perdido',
		format: 'Formato',
		node: 'Nodo',
		stop: 'Desconectar',
	},
	anonymous: 'sin sesión',
	from: (time) => `desde ${time}`,
	watching: (time) => `desde hace ${time}`,
	formats: {
		mpegts: 'MPEG-TS',
		'hls-ts': 'HLS (MPEG-TS)',
		'hls-fmp4': 'HLS (fMP4)',
		'll-hls': 'HLS de baja latencia',
		fmp4: 'fMP4',
		udp: 'Salida UDP',
		rtp: 'Salida RTP',
	},
	file: 'archivo',
	stop: (name) => `Desconectar ${name}`,
	none: 'Nadie está viendo nada',
	noneText: 'Los espectadores de canales, películas, series y diferido aparecen aquí mientras ven algo.',
	noneOfUser: 'Este usuario no ve nada en este momento.',
	noMatch: 'Ningún espectador coincide',
	clear: 'Mostrar todos los espectadores',
	devices: {
		applePlayer: 'Reproductor de Apple',
		androidPlayer: 'Reproductor de Android',
		androidApp: 'App de Android',
		lgTelevision: 'Televisor LG',
		samsungTelevision: 'Televisor Samsung',
	},
};
