import { number } from '$lib/i18n';
import type { replacementText } from '../../pages/sources/replacementText';
import type { Texts } from '../catalogue';
import { nChannels, nStreams } from './nouns';

const keyOf = { panel_id: 'Numero del pannello', guide_id: 'ID guida', name: 'Nome' };

export const replacement: Texts<typeof replacementText> = {
	intro:
		'Sposta i canali di questa sorgente a un’altra, per esempio un nuovo fornitore. Ogni flusso viene sostituito da quello che corrisponde meglio. I canali mantengono numeri, nomi, preferiti e registrazioni.',
	target: 'Sostituisci con',
	choose: 'Scegli una sorgente',
	noTargets: 'Nessun’altra sorgente',
	noTargetsText: 'Aggiungi il nuovo fornitore come sorgente e aggiornalo, poi torna qui.',
	score: 'Punteggio minimo di una coppia in percentuale',
	scoreHint: 'Da 85 a 100. Un punteggio più alto lascia invariati più flussi.',
	preview: 'Anteprima',
	counts: 'Che cosa cambierebbe',
	count: {
		channels: 'canali ricevono flussi dell’altra sorgente',
		pairs: 'flussi hanno un equivalente',
		unpaired: 'flussi non ne hanno e restano',
		removed: 'canali creati dall’altra sorgente per gli stessi flussi vengono rimossi',
		kept: 'di questi canali restano, perché modificati o in uso',
	},
	foundBy: (key, n) => `${keyOf[key]}: ${number(n)}`,
	keyOf,
	reasonOf: {
		no_match: 'Nessuna corrispondenza',
		ambiguous: 'Più corrispondenze equivalenti',
		excepted: 'Escluso',
	},
	lists: 'Flussi',
	listOf: { pairs: 'Coppie', unpaired: 'Senza equivalente' },
	columns: {
		name: 'Flusso',
		replacement: 'Sostituito da',
		host: 'Host',
		key: 'Trovato da',
		score: 'Punteggio',
		reason: 'Perché',
		channels: 'Canali',
	},
	listed: (n, of) => `In elenco ${number(n)} di ${nStreams(of)}.`,
	more: 'Elenca altri',
	nothing: 'Nessun flusso di questa sorgente ha un equivalente.',
	leftOut: (n) => `Esclusi: ${nStreams(n)}.`,
	apply: (n) => `Sostituisci i flussi di ${nChannels(n)}`,
	canUndo: 'Puoi annullare per 24 ore, qui o in Attività.',
};
