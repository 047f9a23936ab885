import { number, plural } from '$lib/i18n';
import type { offersText } from '../../pages/sources/offersText';
import type { Texts } from '../catalogue';
import { nChannels } from './nouns';

export const offers: Texts<typeof offersText> = {
	intro:
		'La playlist indica queste guide. Leggile per vedere quanti dei tuoi canali coprirebbe ciascuna, poi aggiungi quelle che ti servono.',
	emptyTitle: 'La playlist non indica guide',
	emptyText: 'Le guide con un indirizzo proprio si aggiungono in Sorgenti, Guide.',
	readAll: (n) => plural(n, 'Leggi la guida', `Leggi tutte le ${number(n)} guide`),
	read: 'Leggi',
	readOne: (address, n) => `Leggi la guida ${n}: ${address}`,
	reading: (n, of) => `Lettura della guida ${number(n)} di ${number(of)}`,
	stop: 'Interrompi la lettura',
	add: 'Aggiungi come sorgente',
	addOne: (address, n) => `Aggiungi la guida ${n} come sorgente: ${address}`,
	added: (name) => `${name} aggiunta. Il primo aggiornamento è iniziato.`,
	isAdded: 'aggiunta',
	open: 'Apri',
	openOne: (n) => `Apri la guida ${n}`,
	showAddresses: 'Mostra indirizzi',
	hideAddresses: 'Nascondi indirizzi',
	serves: (n, added) =>
		n === 0
			? 'Non copre nessuno dei tuoi canali'
			: `Copre ${nChannels(n)}, ${added === 0 ? 'tutti già con guida' : `${number(added)} finora senza guida`}`,
	inGuide: (n, same) => `${nChannels(n)} nella guida, ${number(same)} con lo stesso ID`,
};
