import { number, plural } from '$lib/i18n';
import type { completionText } from '../../pages/common/completionText';
import type { Texts } from '../catalogue';

export const completion: Texts<typeof completionText> = {
	attribution: 'Dieses Produkt nutzt die TMDB-API, wird aber von TMDB weder unterstützt noch zertifiziert.',
	start: 'Jetzt ergänzen',
	stop: 'Anhalten',
	running: (done, of) => `Wird ergänzt: ${number(done)} von ${number(of)}`,
	ended: (found, ambiguous, unknown) =>
		`Der letzte Durchlauf hat ${number(found)} gefunden. Bei ${number(ambiguous)} passten mehrere Ergebnisse, bei ${number(unknown)} keines.`,
	joined: (n) =>
		plural(n, '1 Titel wurde mit einem anderen vereint.', `${number(n)} Titel wurden mit anderen vereint.`),
	failed: (n) => `${number(n)} blieben ohne brauchbare Antwort.`,
	leftOut: (n) => `${number(n)} bleiben für den nächsten Durchlauf.`,
	remove: 'Ergänzungen entfernen',
	removeTitle: 'Ergänzungen entfernen?',
	removeText:
		'Alle Filme und Serien erhalten die Werte ihrer Anbieter zurück. Ihre eigenen Änderungen bleiben.',
	removed: (n) =>
		plural(n, '1 Titel hat wieder eigene Werte.', `${number(n)} Titel haben wieder eigene Werte.`),
};
