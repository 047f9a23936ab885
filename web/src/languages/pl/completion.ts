import { number } from '$lib/i18n';
import type { completionText } from '../../pages/common/completionText';
import type { Texts } from '../catalogue';

export const completion: Texts<typeof completionText> = {
	attribution: 'Ten produkt korzysta z API TMDB, ale nie jest wspierany ani certyfikowany przez TMDB.',
	start: 'Uzupełnij teraz',
	stop: 'Zatrzymaj',
	running: (done, of) => `Uzupełnianie: ${number(done)} z ${number(of)}`,
	ended: (found, ambiguous, unknown) =>
		`Znalezione w ostatnim przebiegu: ${number(found)}. Z kilkoma pasującymi wynikami: ${number(ambiguous)}, bez wyniku: ${number(unknown)}.`,
	joined: (n) => `Tytuły połączone z innymi: ${number(n)}.`,
	failed: (n) => `Bez użytecznej odpowiedzi: ${number(n)}.`,
	leftOut: (n) => `Na następny przebieg: ${number(n)}.`,
	remove: 'Usuń uzupełnienia',
	removeTitle: 'Usunąć uzupełnienia?',
	removeText: 'Wszystkie filmy i seriale odzyskają wartości dostawców. Twoje zmiany zostaną.',
	removed: (n) => `Tytuły znów z własnymi wartościami: ${number(n)}.`,
};
