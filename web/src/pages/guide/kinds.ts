// The kinds of programmes, by which the guide colours them.

/** Kinds, the first of those that fit counts. */
export const KINDS = ['children', 'sports', 'news', 'documentary', 'film', 'series'] as const;
export type Kind = (typeof KINDS)[number];

/** Beginnings of words in categories, in the languages of guides. */
const WORDS: Record<Kind, string> = {
	children:
		'child kids kinder infantil infância enfant jeunesse bambini ragazzi dzieci dla-dzieci cartoon zeichentrick barn niños',
	sports:
		'sport fußball fussball football soccer fútbol futbol futebol calcio deporte desporto esporte piłka tennis tenis motorsport handball basketball voetbal',
	news: 'news nachrichten noticias notícias notizie informati infos actualité journal telegiornale wiadomości tagesschau nieuws aktualności',
	documentary: 'docu doku documental documentaire documentario documentário dokument reportage',
	film: 'film movie spielfilm película cine cinéma kino speelfilm',
	series: 'series serie série serial sitcom soap telenovela seriado',
};

/** Returns the words of a kind as the search of the gateway takes them. */
export const queryOf = (kind: Kind): string => WORDS[kind].split(' ').join(' OR ');

/** Returns a text in lower case and without accents, as the search of the gateway compares them. */
const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

/** Beginnings of words of each kind. */
const BEGINNINGS = KINDS.map((kind) => [kind, WORDS[kind].split(' ').map(plain)] as const);

/** Kinds by categories. Guides have few different ones. */
const known = new Map<string, Kind | undefined>();
const KNOWN_MAX = 2_000;

/** Returns the kind of a programme with these categories; `undefined` if none fits. */
export function kindOf(categories: readonly string[] | null | undefined): Kind | undefined {
	if (!categories?.length) return undefined;
	const key = categories.join('\n');
	if (known.has(key)) return known.get(key);
	const words = plain(key).split(/[^\p{L}\p{N}]+/u);
	const fits = (beginnings: readonly string[]): boolean =>
		words.some((word) => beginnings.some((it) => word.startsWith(it)));
	const kind = BEGINNINGS.find(([, beginnings]) => fits(beginnings))?.[0];
	if (known.size >= KNOWN_MAX) known.clear();
	known.set(key, kind);
	return kind;
}
