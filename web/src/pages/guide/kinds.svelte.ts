// The kinds of programmes, by which the guide colours them.

import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import { api, isAbort, ok } from '$lib/api';
import { HOUR_MS } from './axis';

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

export type LoadKind = (
	kind: Kind,
	from: number,
	until: number,
	page: number,
	signal: AbortSignal,
) => Promise<{ ids: (number | string)[]; hasMore: boolean }>;

/** Programmes of one request. The limit of the API. */
const PAGE_ROWS = 500;
/** Pages that are read of a kind in a span of time. */
const PAGES_MAX = 6;
/** Length of the spans of time that are read, in milliseconds. */
const SPAN_MS = 6 * HOUR_MS;

export const loadKind: LoadKind = async (kind, from, until, page, signal) => {
	const query = {
		category: queryOf(kind),
		end_after: new Date(from).toISOString(),
		start_before: new Date(until).toISOString(),
		fields: ['id'],
		page,
		page_size: PAGE_ROWS,
	};
	const found = await ok(api.GET('/api/epg/programs/search/', { params: { query }, signal }));
	return { ids: found.results.flatMap((it) => (it.id == null ? [] : [it.id])), hasMore: found.next !== null };
};

/** The kinds of the programmes in the times that were visible. They are read after the programmes, one request at a time. */
export class ProgrammeKinds {
	#load: LoadKind;
	#kinds = new SvelteMap<string, Kind>();
	#known = new SvelteSet<number>();
	#wanted: number[] = [];
	#request: AbortController | null = null;
	#isReading = false;

	constructor(load: LoadKind = loadKind) {
		this.#load = load;
	}

	of(id: number | string): Kind | undefined {
		return this.#kinds.get(String(id));
	}

	/** Asks for the kinds of what runs in a span of time. */
	want(from: number, until: number): void {
		this.#wanted = [];
		for (let n = Math.floor(from / SPAN_MS); n * SPAN_MS < until; n += 1) this.#wanted.push(n);
		void this.#read();
	}

	/** Reads all of it again. */
	refresh(): void {
		this.#known.clear();
		void this.#read();
	}

	abort(): void {
		this.#wanted = [];
		this.#request?.abort();
	}

	async #read(): Promise<void> {
		if (this.#isReading) return;
		this.#isReading = true;
		try {
			for (;;) {
				const span = this.#wanted.find((it) => !this.#known.has(it));
				if (span === undefined) return;
				this.#known.add(span);
				await this.#readSpan(span);
			}
		} catch (error) {
			// Without colours, the guide says the same.
			if (!isAbort(error)) this.#wanted = [];
		} finally {
			this.#isReading = false;
		}
	}

	async #readSpan(span: number): Promise<void> {
		// From the last kind to the first, which counts.
		for (const kind of KINDS.toReversed()) {
			for (let page = 1; page <= PAGES_MAX; page += 1) {
				const request = new AbortController();
				this.#request = request;
				const until = (span + 1) * SPAN_MS;
				const { ids, hasMore } = await this.#load(kind, span * SPAN_MS, until, page, request.signal);
				request.signal.throwIfAborted();
				for (const id of ids) this.#kinds.set(String(id), kind);
				if (!hasMore) break;
			}
		}
	}
}
