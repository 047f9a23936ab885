import { number } from '$lib/i18n';
import type { text } from '../../pages/common/guide/text';
import type { Texts } from '../catalogue';

export const guideChoice: Texts<typeof text> = {
	title: (name) => `Przewodnik dla ${name}`,
	present: 'Kanał przewodnika:',
	presentById: 'Kanał przewodnika z tym samym ID:',
	noPresent: 'Ten kanał nie ma kanału przewodnika.',
	suggestions: 'Propozycje',
	decisions: {
		link: 'Pasuje jeden kanał przewodnika.',
		tie: 'Kilka kanałów przewodnika pasuje tak samo dobrze. Wybierz jeden.',
		below_threshold: 'Żaden kanał przewodnika nie pasuje wystarczająco. Oto najbardziej podobne.',
		no_candidate: 'Żaden kanał przewodnika nie ma podobnej nazwy.',
		no_name: 'Nazwa kanału nie zawiera słowa do porównania.',
	},
	score: (score) => `${number(score)} %`,
	use: 'Użyj',
	useOne: (name, key) => `Użyj ${name} (${key})`,
	useChosen: 'Użyj wybranego',
	other: 'Inny kanał przewodnika',
	otherHint: 'Wpisz część nazwy lub ID.',
	unlink: 'Usuń kanał przewodnika',
	noSources: 'Brak przewodnika',
	noSourcesText: 'Najpierw dodaj przewodnik w Źródłach.',
};
