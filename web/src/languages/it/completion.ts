import { number, plural } from '$lib/i18n';
import type { completionText } from '../../pages/common/completionText';
import type { Texts } from '../catalogue';

export const completion: Texts<typeof completionText> = {
	attribution: 'Questo prodotto usa l’API di TMDB, ma non è approvato né certificato da TMDB.',
	start: 'Completa ora',
	stop: 'Ferma',
	running: (done, of) => `Completamento: ${number(done)} di ${number(of)}`,
	ended: (found, ambiguous, unknown) =>
		`Titoli trovati nell’ultimo passaggio: ${number(found)}. Con più risultati possibili: ${number(ambiguous)}; senza risultati: ${number(unknown)}.`,
	joined: (n) =>
		plural(n, '1 titolo è stato unito a un altro.', `${number(n)} titoli sono stati uniti ad altri.`),
	failed: (n) => `Senza una risposta utile: ${number(n)}.`,
	leftOut: (n) => `Rimandati al prossimo passaggio: ${number(n)}.`,
	remove: 'Rimuovi i completamenti',
	removeTitle: 'Rimuovere i completamenti?',
	removeText: 'Tutti i film e le serie riprendono i valori dei loro provider. Le tue modifiche restano.',
	removed: (n) =>
		plural(n, '1 titolo ha di nuovo i suoi valori.', `${number(n)} titoli hanno di nuovo i loro valori.`),
};
