import { number } from '$lib/i18n';
import type { text } from '../../pages/slots/text';
import type { Texts } from '../catalogue';

export const slots: Texts<typeof text> = {
	intro: 'Ogni collegamento a un fornitore occupa una connessione di un profilo di account.',
	idle: 'Nessuna connessione in uso.',
	none: 'Nessun profilo di account',
	noneText: 'Le connessioni compaiono qui quando c’è una sorgente.',
	addSource: 'Aggiungi una sorgente',
	free: 'libera',
	closing: 'in chiusura',
	cooling: (seconds) => `in attesa ${seconds} s`,
	unlimited: 'nessun limite',
	discovered: (n) => `limite rilevato: ${number(n)}`,
	inUse: (used, max) => `${number(used)} di ${number(max)} in uso`,
	used: (n) => `${number(n)} in uso`,
	waiting: 'In attesa',
	purposes: { live: '', preview: 'anteprima', trial: 'prova', vod: 'film o episodio' },
	since: (time) => `iniziata ${time}`,
	groups: 'Gruppi di server',
	inactive: 'non attivo',
	all: (n) => `Mostra tutti (${number(n)})`,
};
