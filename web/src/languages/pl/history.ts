import { number, pluralForm } from '$lib/i18n';
import type { text } from '../../pages/history/text';
import type { Texts } from '../catalogue';

/** Returns the number with its noun. */
const counted = (n: number, one: string, few: string, many: string): string =>
	`${number(n)} ${pluralForm(n, { one, few, many, other: few })}`;

export const history: Texts<typeof text> = {
	intro:
		'Mierzona co dziesięć sekund i przechowywana na tej bramie: co pięć minut przez dwa dni, co godzinę przez 60 dni.',
	introNode: (node) =>
		`Mierzona co dziesięć sekund na węźle ${node}, który przechowuje własną historię: co pięć minut przez dwa dni, co godzinę przez 60 dni.`,
	scope: 'Pokaż',
	scopes: {
		gateway: 'Cała brama',
		account: 'Konto',
		channel: 'Kanał',
		stream: 'Strumień',
		user: 'Użytkownik',
	},
	choose: {
		account: 'Wybierz konto, aby zobaczyć jego historię.',
		channel: 'Wybierz kanał, aby zobaczyć jego historię.',
		stream: 'Wybierz strumień, aby zobaczyć jego historię.',
		user: 'Wybierz użytkownika, aby zobaczyć historię.',
	},
	streams: 'Strumienie kanału',
	nobody: 'Nic nie wybrano',
	range: 'Okres',
	ranges: { '6h': '6 godzin', '24h': '24 godziny', '7d': '7 dni', '60d': '60 dni' },
	off: 'Historia jest wyłączona',
	offText: 'Nic nie jest przechowywane. Włącza się ją w ustawieniach.',
	offUser: 'Historia użytkowników nie jest przechowywana',
	offUserText:
		'Przepływność i widzowie każdego użytkownika są przechowywane tylko wtedy, gdy tak mówią ustawienia.',
	toSettings: 'Otwórz ustawienia',
	nothing: 'Jeszcze brak danych',
	nothingText: 'Pierwsze wartości pojawią się po minucie.',
	charts: {
		rate: 'Przepływność',
		viewers: 'Widzowie',
		slots: 'Używane połączenia',
		health: 'Czas odtwarzania',
		failovers: 'Przełączenia',
		recordings: 'Dysk nagrań',
	},
	series: {
		in: 'Odebrano',
		out: 'Wysłano',
		viewers: 'Średnia',
		viewersMax: 'Szczyt',
		slots: 'W użyciu',
		limit: 'Limit',
		recordings: 'Rozmiar',
	},
	highest: (value) => `najwyżej ${value}`,
	said: (chart, parts) => `${chart}: ${parts}.`,
	seriesSaid: (name, newest, highest) => `${name} ${newest}, najwyżej ${highest}`,
	unknown: 'nieznane',
	noLimit: 'bez limitu',
	failovers: (n) => counted(n, 'przełączenie', 'przełączenia', 'przełączeń'),
	losses: (n) => `${counted(n, 'awaria', 'awarie', 'awarii')} strumieni`,
	playing: (share) => `odtwarzanie przez ${share} czasu użycia`,
	notUsed: 'nieużywany',
	asTable: 'Jako tabela',
	time: 'Czas',
};
