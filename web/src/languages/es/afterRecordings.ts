import { number, plural } from '$lib/i18n';
import type { afterText } from '../../pages/recordings/afterText';
import type { Texts } from '../catalogue';

const conversions = {
	queued: (format: string) => `se convertirá a ${format}`,
	running: (format: string) => `se está convirtiendo a ${format}`,
	completed: (format: string) => format,
	failed: (format: string) => `no se convirtió a ${format}`,
};

export const afterRecordings: Texts<typeof afterText> = {
	title: 'Después de una grabación',
	remux: (status, format, reason) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(': '),
	container: 'Contenedor',
	containerHint:
		'El MPEG-TS se conserva hasta que el archivo nuevo tenga los mismos flujos y la misma duración.',
	containers: { none: 'como se grabó (MPEG-TS)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Escribir junto a cada archivo una descripción para servidores multimedia (NFO)',
	artwork: 'Escribir junto a cada archivo una imagen para servidores multimedia',
	mode: 'Publicidad encontrada',
	modeHint: 'La grabación queda como está.',
	modes: { mark: 'se marca', cut: 'se marca, y se omite en una copia junto a la grabación' },
	saved: 'Guardado.',
	commercials: 'Publicidad',
	search: 'Buscar publicidad',
	searches: {
		queued: 'espera su turno',
		running: 'buscando',
		completed: 'encontrada',
		none_found: 'no se ha encontrado',
		failed: 'fallida',
	},
	breaks: (n, length) => `${number(n)} ${plural(n, 'bloque', 'bloques')}, ${length}`,
	columns: { start: 'Desde', end: 'Hasta', length: 'Duración' },
	cut: 'Copia sin publicidad',
	cuts: { queued: 'espera su turno', running: 'en preparación', completed: 'lista', failed: 'fallida' },
	playCut: 'Reproducir la copia',
	saveCut: 'Descargar la copia',
	notSearched: 'Aún no se ha buscado publicidad.',
	comskip: 'Publicidad (comskip)',
	missing: 'El programa comskip no está instalado, o programs.comskip indica otro.',
	enabled: 'Buscar publicidad después de cada grabación',
	config: 'Configuración',
	configHint: 'Líneas de comskip.ini, como detect_method=43. Vacío: los valores del propio comskip.',
	upload: 'Leer la configuración de un archivo',
	uploaded: 'La configuración se ha sustituido.',
};
