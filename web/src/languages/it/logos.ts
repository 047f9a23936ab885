import { bytes } from '$lib/i18n';
import type { text } from '../../pages/logos/text';
import type { Texts } from '../catalogue';
import { nChannels, nLogos } from './nouns';

export const logos: Texts<typeof text> = {
	logos: nLogos,
	channels: nChannels,
	search: 'Cerca loghi',
	use: 'Uso',
	uses: { any: 'Usati e non usati', used: 'Usati da canali', unused: 'Non usati' },
	columns: { name: 'Nome', address: 'Indirizzo', channels: 'Canali' },
	add: 'Aggiungi logo',
	deleteUnused: 'Elimina i loghi non usati',
	deleteUnusedTitle: 'Eliminare tutti i loghi che nessun canale usa?',
	deleteText: 'I canali perdono i loghi eliminati. Puoi annullare per un giorno.',
	deleteMany: (n) => `Elimina ${nLogos(n)}`,
	question: (action) => `${action}?`,
	batches: (n) => `Si possono eliminare al massimo ${nLogos(n)} alla volta.`,
	emptyTitle: 'Ancora nessun logo',
	emptyText: 'I loghi arrivano con le playlist o si aggiungono qui.',
	noMatch: 'Nessun logo corrisponde',
	newTitle: 'Aggiungi un logo',
	wayLabel: 'Provenienza del logo',
	ways: { url: 'Indirizzo', file: 'File' },
	name: 'Nome',
	nameHint: 'Predefinito: quello del file.',
	url: 'Indirizzo dell’immagine',
	file: 'Immagine',
	fileHint: (n) => `PNG, JPEG, WebP, GIF o SVG, fino a ${bytes(n)}.`,
	fileMissing: 'Scegli un file.',
	uploaded: 'caricato',
	usedBy: (n) => (n === 0 ? 'Nessun canale lo usa.' : `Usato da ${nChannels(n)}:`),
	saved: 'Salvato.',
	uploading: 'Caricamento',
};
