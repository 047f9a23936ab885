import { number } from '$lib/i18n';
import type { identityText } from '../../pages/sources/identityText';
import type { Texts } from '../catalogue';
import { counted, nStreams } from './nouns';

export const identity: Texts<typeof identityText> = {
	intro:
		'Dostawcy zmieniają adresy, nazwy i grupy. Odświeżanie porównuje każdy wpis listy ze znanymi strumieniami według tych kluczy, od pierwszego do ostatniego. Rozpoznany strumień zachowuje swoje kanały i Twoje zmiany. Klucz liczy się tylko wtedy, gdy żaden inny wpis ani strumień nie ma tej samej wartości.',
	keys: 'Klucze rozpoznawania strumieni',
	keyOf: {
		panel_id: ['Numer w panelu', 'Numer w adresie panelu: …/user/password/NUMER.ts.'],
		address: ['Adres', 'Cały adres. Zawsze jest porównywany.'],
		bare_address: [
			'Adres bez tokena',
			'Bez zmiennych części: tokenów, czasu ważności i danych logowania źródła.',
		],
		guide_id: ['ID przewodnika', 'ID z listy: tvg-id, inaczej channel-id, inaczej tvc-guide-stationid.'],
		name_and_group: ['Nazwa i grupa', 'Razem, więc jedna nazwa może być w dwóch grupach.'],
		name: ['Nazwa', 'Najsłabszy klucz. Lista, w której zgadzają się tylko nazwy, czeka na Twoją decyzję.'],
	},
	recognises: (n) => `Rozpoznaje: ${nStreams(n)}.`,
	preview: 'Podgląd odświeżenia',
	defaultOrder: 'Domyślna kolejność',
	saved: 'Zapisano. Działa od następnego odświeżenia.',
	read: (n) => `Lista ma ${counted(n, 'wpis', 'wpisy', 'wpisów', 'wpisu')}. Niczego nie zmieniono.`,
	waits: 'Odświeżanie czekałoby na Twoją decyzję:',
	counts: 'Strumienie po odświeżeniu',
	count: {
		unchanged: 'bez zmian',
		moved: 'z nowym adresem',
		updated: 'z nową nazwą, grupą lub inną wartością',
		created: 'nowe',
		stale: 'już nie na liście',
		deleted: 'do usunięcia',
		ambiguous: 'pasuje kilka wpisów, więc nie wybrano żadnego',
		leftOut: 'wpisy pominięte przez filtry i grupy',
	},
	lists: 'Zmienione strumienie',
	listOf: { moved: 'Inny adres', updated: 'Zmienione', created: 'Nowe', missing: 'Brakujące' },
	columns: { name: 'Nazwa', host: 'Host', key: 'Rozpoznano po' },
	listed: (n, of) => `Na liście: ${number(n)} z ${number(of)}.`,
};
