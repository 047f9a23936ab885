import { number } from '$lib/i18n';
import type { offersText } from '../../pages/sources/offersText';
import type { Texts } from '../catalogue';
import { nChannels } from './nouns';

export const offers: Texts<typeof offersText> = {
	intro:
		'Lista wskazuje te przewodniki. Odczytaj je, aby zobaczyć, ile Twoich kanałów obejmie każdy, a potem dodaj potrzebne.',
	emptyTitle: 'Lista nie wskazuje przewodnika',
	emptyText: 'Przewodniki z własnym adresem dodaje się w Źródła, Przewodniki.',
	readAll: (n) => (n === 1 ? 'Odczytaj przewodnik' : `Odczytaj wszystkie przewodniki (${number(n)})`),
	read: 'Odczytaj',
	readOne: (address, n) => `Odczytaj przewodnik ${n}: ${address}`,
	reading: (n, of) => `Odczyt przewodnika ${number(n)} z ${number(of)}`,
	stop: 'Przerwij odczyt',
	add: 'Dodaj jako źródło',
	addOne: (address, n) => `Dodaj przewodnik ${n} jako źródło: ${address}`,
	added: (name) => `Dodano ${name}. Rozpoczęto pierwsze odświeżanie.`,
	isAdded: 'dodany',
	open: 'Otwórz',
	openOne: (n) => `Otwórz przewodnik ${n}`,
	showAddresses: 'Pokaż adresy',
	hideAddresses: 'Ukryj adresy',
	serves: (n, added) =>
		n === 0
			? 'Nie obejmuje Twoich kanałów'
			: `Obejmuje ${nChannels(n)}, ${added === 0 ? 'wszystkie mają przewodnik' : `bez przewodnika: ${number(added)}`}`,
	inGuide: (n, same) => `W przewodniku ${nChannels(n)}, z tym samym ID: ${number(same)}`,
};
