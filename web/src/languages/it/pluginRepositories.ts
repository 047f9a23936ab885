import type { repositoriesText } from '../../pages/plugins/repositoriesText';
import type { Texts } from '../catalogue';

export const pluginRepositories: Texts<typeof repositoriesText> = {
	title: 'Repository di plugin',
	back: 'Tutti i plugin',
	about:
		'Un repository elenca plugin con le loro versioni e somme di controllo. Ogni archivio viene verificato prima dell’installazione, e nulla viene eseguito finché non lo attivi.',
	add: 'Aggiungi un repository',
	url: 'Indirizzo',
	urlHint: 'Quello del suo manifest, per esempio https://example.com/manifest.json.',
	key: 'Chiave pubblica',
	keyHint:
		'Facoltativa: una chiave OpenPGP di cui ti fidi. Allora si accettano solo elenchi firmati con essa.',
	refresh: 'Aggiorna elenco',
	refreshOf: (name) => `Aggiorna l’elenco di ${name}`,
	remove: 'Rimuovi',
	removeOf: (name) => `Rimuovi ${name}`,
	removeTitle: (name) => `Rimuovere il repository «${name}»?`,
	removeText: 'I plugin installati da esso restano.',
	verified: 'firmato con la tua chiave',
	signature: {
		not_checked: 'firma non verificata: nessuna chiave',
		not_signed: 'non firmato',
	},
	fetched: (at) => `Ultima lettura: ${at}`,
	plugins: 'Plugin disponibili',
	none: 'Nessun plugin',
	deprecated: 'obsoleto',
	isInstalled: (version) => `installato: ${version}`,
	install: 'Installa',
	installOf: (name) => `Installa ${name}`,
	update: 'Aggiorna',
	updateOf: (name) => `Aggiorna ${name}`,
	by: (author, license, repository) => [author, license, repository].filter(Boolean).join(' · '),
	installed: (name, version) => `${name} ${version} è installato.`,
	unsignedTitle: (name) => `Installare «${name}» senza una firma verificata?`,
	unsignedText:
		'La somma di controllo mostra che l’archivio è quello indicato dal repository. Senza firma nessuno garantisce per il repository stesso.',
	replaceTitle: 'Sostituire il plugin installato?',
	replaceText: (reason) => `${reason}. Le sue impostazioni e i suoi file restano.`,
	replace: 'Sostituisci',
};
