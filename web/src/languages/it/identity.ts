import { number, plural } from '$lib/i18n';
import type { identityText } from '../../pages/sources/identityText';
import type { Texts } from '../catalogue';
import { nStreams } from './nouns';

export const identity: Texts<typeof identityText> = {
	intro:
		'I fornitori cambiano indirizzi, nomi e gruppi. Un aggiornamento confronta ogni voce della lista con i flussi noti in base a queste chiavi, dalla prima all’ultima. Un flusso riconosciuto mantiene i suoi canali e le tue modifiche. Una chiave vale solo se nessun’altra voce e nessun altro flusso ha lo stesso valore.',
	keys: 'Chiavi con cui si riconoscono i flussi',
	keyOf: {
		panel_id: ['Numero del pannello', 'Il numero nell’indirizzo di un pannello: …/user/password/NUMERO.ts.'],
		address: ['Indirizzo', 'L’indirizzo intero. Viene sempre confrontato.'],
		bare_address: [
			'Indirizzo senza token',
			'Senza le parti che cambiano: token, scadenze e accesso della sorgente.',
		],
		guide_id: [
			'ID guida',
			'L’ID nella lista: tvg-id, altrimenti channel-id, altrimenti tvc-guide-stationid.',
		],
		name_and_group: ['Nome e gruppo', 'Insieme, quindi un nome può stare in due gruppi.'],
		name: ['Nome', 'La chiave più debole. Se coincidono solo i nomi, la lista attende la tua decisione.'],
	},
	recognises: (n) => `Riconosce ${nStreams(n)}.`,
	preview: 'Anteprima dell’aggiornamento',
	defaultOrder: 'Ordine predefinito',
	saved: 'Salvato. Vale dal prossimo aggiornamento.',
	read: (n) => `La lista ha ${plural(n, '1 voce', `${number(n)} voci`)}. Non è stato modificato nulla.`,
	waits: 'L’aggiornamento attenderebbe la tua decisione:',
	counts: 'Flussi dopo l’aggiornamento',
	count: {
		unchanged: 'restano come sono',
		moved: 'cambiano indirizzo',
		updated: 'cambiano nome, gruppo o altro',
		created: 'sono nuovi',
		stale: 'non sono più nella lista',
		deleted: 'vengono rimossi',
		ambiguous: 'potrebbero essere più voci, quindi nessuna vale',
		leftOut: 'voci escluse da filtri e gruppi',
	},
	lists: 'Flussi cambiati',
	listOf: { moved: 'Altro indirizzo', updated: 'Modificati', created: 'Nuovi', missing: 'Mancanti' },
	columns: { name: 'Nome', host: 'Host', key: 'Riconosciuto da' },
	listed: (n, of) => `In elenco ${number(n)} di ${nStreams(of)}.`,
};
