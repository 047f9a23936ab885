import type { text } from '../../pages/lineups/text';
import type { Texts } from '../catalogue';
import { nChannels } from './nouns';

export const lineups: Texts<typeof text> = {
	add: 'Aggiungi lista canali',
	newTitle: 'Aggiungi una lista canali',
	emptyTitle: 'Ancora nessuna lista canali',
	emptyText:
		'Una lista canali è una selezione di canali per alcuni utenti o per un tuner. Senza, tutti hanno tutti i canali.',
	columns: { name: 'Nome', channels: 'Canali', added: 'Nuovi canali' },
	channels: nChannels,
	addsNew: 'vengono aggiunti',
	addsNone: 'vengono esclusi',
	name: 'Nome',
	description: 'Descrizione',
	addNew: 'Comprende i nuovi canali',
	addNewHint: 'Una lista creata senza questa opzione parte senza canali.',
	showChannels: 'Mostra i suoi canali',
	copy: 'Crea una copia',
	copyName: (name) => `${name} (copia)`,
	saved: 'Salvato.',
	deleteTitle: (name) => `Eliminare la lista canali ${name}?`,
	deleteText: 'I suoi canali restano. Gli utenti e i tuner della lista la perdono. Non si può annullare.',
	deleted: (name) => `Lista canali ${name} eliminata.`,
};
