import type { text } from '../../pages/lineups/text';
import type { Texts } from '../catalogue';
import { nChannels } from './nouns';

export const lineups: Texts<typeof text> = {
	add: 'Dodaj zestaw',
	newTitle: 'Dodaj zestaw kanałów',
	emptyTitle: 'Brak zestawów kanałów',
	emptyText:
		'Zestaw to wybór kanałów dla niektórych użytkowników lub tunera. Bez zestawów każdy ma wszystkie kanały.',
	columns: { name: 'Nazwa', channels: 'Kanały', added: 'Nowe kanały' },
	channels: nChannels,
	addsNew: 'są dodawane',
	addsNone: 'są pomijane',
	name: 'Nazwa',
	description: 'Opis',
	addNew: 'Obejmuje nowe kanały',
	addNewHint: 'Zestaw utworzony bez tej opcji zaczyna bez kanałów.',
	showChannels: 'Pokaż jego kanały',
	copy: 'Utwórz kopię',
	copyName: (name) => `${name} (kopia)`,
	saved: 'Zapisano.',
	deleteTitle: (name) => `Usunąć zestaw ${name}?`,
	deleteText: 'Kanały pozostają. Użytkownicy i tunery tracą ten zestaw. Nie można tego cofnąć.',
	deleted: (name) => `Usunięto zestaw ${name}.`,
};
