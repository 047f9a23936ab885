import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/common/text';
import type { Texts } from '../catalogue';

const batches = (n: number) => `${number(n)} ${plural(n, 'lote', 'lotes')}`;

export const shared: Texts<typeof text> = {
	xtreamTitle: 'Aplicaciones que piden servidor, usuario y contraseña',
	server: 'Servidor',
	username: 'Usuario',
	password: 'Contraseña',
	playlistTitle: 'Reproductores que usan direcciones',
	kinds: {
		xtream: 'Servidor',
		m3u: 'Lista de reproducción (M3U)',
		xmltv: 'Guía (XMLTV)',
		m3u_with_key: 'Lista con clave de API',
		xmltv_with_key: 'Guía con clave de API',
		recordings: 'Grabaciones (M3U)',
		recordings_guide: 'Guía de grabaciones (XMLTV)',
		tuner: 'Sintonizador para servidores multimedia',
	},
	ofProfile: (kind, profile) => `${kind}, ${profile}`,
	holdsPassword: 'Estas direcciones contienen la contraseña. Quien tenga una puede ver los canales.',
	withKeyTitle: 'Direcciones que necesitan una cabecera',
	withKey: (header) => `Los programas envían la clave de API en la cabecera ${header}.`,
	loopback: (url) =>
		`${url} solo es accesible desde esta máquina. Abre esta página con la dirección de la máquina en tu red, o define la dirección pública en los ajustes.`,
	allowNetworks: 'Cambiar las redes permitidas',
	favourite: (name) => `Favorito: ${name}`,
	sleep: {
		title: 'Apagado automático',
		after: 'Los flujos terminan en',
		start: 'Iniciar',
		change: 'Cambiar',
		remove: 'Quitar el temporizador',
		endsAt: (time, when) => `Todos los flujos terminan a las ${time} (${when}).`,
		isSet: 'El apagado automático está activado.',
		isRemoved: 'El apagado automático está desactivado.',
	},
	batch: (done, of) => `${number(done)} de ${batches(of)}`,
	stoppedAfter: (done, of, reason) => `${number(done)} de ${batches(of)}; después: ${reason}`,
	undone: 'Deshecho.',
	pagesOf: (label) => `Páginas: ${label}`,
	older: 'Más antiguos',
	newer: 'Más recientes',
	range: (from, until, all) => `${number(from)} a ${number(until)} de ${number(all)}`,
	order: {
		moveUp: (name) => `Subir ${name}`,
		moveDown: (name) => `Bajar ${name}`,
		moveTo: (name) => `Posición de ${name}`,
		movedTo: (name, n) => `${name} está en la posición ${number(n)}`,
		shown: (n, of) => `${number(n)} de ${number(of)}`,
	},
};
