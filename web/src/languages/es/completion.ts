import { number, plural } from '$lib/i18n';
import type { completionText } from '../../pages/common/completionText';
import type { Texts } from '../catalogue';

export const completion: Texts<typeof completionText> = {
	attribution: 'Este producto usa la API de TMDB, pero no está respaldado ni certificado por TMDB.',
	start: 'Completar ahora',
	stop: 'Detener',
	running: (done, of) => `Completando: ${number(done)} de ${number(of)}`,
	ended: (found, ambiguous, unknown) =>
		`La última pasada encontró ${number(found)}. En ${number(ambiguous)} encajaban varios resultados y en ${number(unknown)} ninguno.`,
	joined: (n) => plural(n, '1 título se unió con otro.', `${number(n)} títulos se unieron con otros.`),
	failed: (n) => `${number(n)} quedaron sin respuesta útil.`,
	leftOut: (n) => `${number(n)} quedan para la siguiente pasada.`,
	remove: 'Quitar lo completado',
	removeTitle: '¿Quitar lo completado?',
	removeText:
		'Todas las películas y series recuperan los valores de sus proveedores. Sus propios cambios se conservan.',
	removed: (n) =>
		plural(n, '1 título vuelve a tener sus valores.', `${number(n)} títulos vuelven a tener sus valores.`),
};
