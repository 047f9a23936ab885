import { number } from '$lib/i18n';
import type { replacementText } from '../../pages/sources/replacementText';
import type { Texts } from '../catalogue';
import { nChannels, nStreams } from './nouns';

const keyOf = { panel_id: 'Numer w panelu', guide_id: 'ID przewodnika', name: 'Nazwa' };

export const replacement: Texts<typeof replacementText> = {
	intro:
		'Przenosi kanały tego źródła do innego, np. do nowego dostawcy. Każdy strumień zastępuje ten, który pasuje najlepiej. Kanały zachowują numery, nazwy, ulubione i nagrania.',
	target: 'Zastąp przez',
	choose: 'Wybierz źródło',
	noTargets: 'Brak innego źródła',
	noTargetsText: 'Dodaj nowego dostawcę jako źródło, odśwież je i wróć tutaj.',
	score: 'Najniższy wynik pary w procentach',
	scoreHint: 'Od 85 do 100. Wyższy wynik pozostawia więcej strumieni bez zmian.',
	preview: 'Podgląd',
	counts: 'Co by się zmieniło',
	count: {
		channels: 'kanały, które dostaną strumienie innego źródła',
		pairs: 'strumienie z odpowiednikiem',
		unpaired: 'strumienie bez odpowiednika, pozostaną',
		removed: 'usuwane kanały, które drugie źródło utworzyło dla tych strumieni',
		kept: 'takie kanały, które zostają, bo je zmieniono lub są w użyciu',
	},
	foundBy: (key, n) => `${keyOf[key]}: ${number(n)}`,
	keyOf,
	reasonOf: { no_match: 'Nic nie pasuje', ambiguous: 'Kilka pasuje tak samo dobrze', excepted: 'Pominięty' },
	lists: 'Strumienie',
	listOf: { pairs: 'Pary', unpaired: 'Bez odpowiednika' },
	columns: {
		name: 'Strumień',
		replacement: 'Zastąpi go',
		host: 'Host',
		key: 'Znaleziono po',
		score: 'Wynik',
		reason: 'Dlaczego',
		channels: 'Kanały',
	},
	listed: (n, of) => `Na liście: ${number(n)} z ${number(of)}.`,
	more: 'Pokaż więcej',
	nothing: 'Żaden strumień tego źródła nie ma odpowiednika.',
	leftOut: (n) => `Pominięto: ${nStreams(n)}.`,
	apply: (n) => `Zastąp strumienie: ${nChannels(n)}`,
	canUndo: 'Można to cofnąć przez 24 godziny, tutaj lub w Aktywności.',
};
