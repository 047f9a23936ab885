import { number } from '$lib/i18n';
import type { text } from '../../pages/permissions/text';
import type { Texts } from '../catalogue';
import { nUsers } from './nouns';

export const permissions: Texts<typeof text> = {
	back: 'Utenti',
	intro:
		'Questi permessi sono stati assegnati prima di avere effetto, o da un’importazione. Non consentono nulla finché non li confermi.',
	effects: 'Che cosa consentono',
	permission: 'Permesso',
	effect: 'Effetto',
	list: 'Utenti con permessi non confermati',
	columns: { user: 'Utente', permissions: 'Permessi' },
	search: 'Cerca utenti',
	none: 'Nessun permesso da confermare',
	noneText: 'Tutti i permessi con effetto sono confermati.',
	noMatch: 'Nessun utente corrisponde',
	confirm: 'Conferma',
	confirmAll: (n) => `Conferma per tutti (${number(n)})`,
	confirmOf: (name) => `Conferma i permessi di ${name}`,
	ask: (n) => `Confermare i permessi di ${nUsers(n)}?`,
	askText: 'Hanno effetto subito. Per revocarne uno in seguito, toglilo all’utente.',
	confirmed: (n) => `Confermati per ${nUsers(n)}.`,
	notice: (n) => `${nUsers(n)} con permessi che nessuno ha confermato`,
	noticeText: 'Non hanno effetto finché un amministratore non li conferma.',
	look: 'Vedi permessi',
};
