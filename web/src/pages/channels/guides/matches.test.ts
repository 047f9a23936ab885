import { describe, expect, it } from 'vitest';
import { bestOf, rowsWithout, shownOf, type Match } from './matches';

const candidate = (epg_data_id: number, score: number) => ({
	epg_data_id,
	score,
	tvg_id: `c${epg_data_id}`,
	name: `C${epg_data_id}`,
	epg_source: 1,
	reasons: [],
});
const match = (channel_id: number, values: Partial<Match>): Match => ({
	channel_id,
	channel_name: `Channel ${channel_id}`,
	decision: 'link',
	epg_data_id: null,
	candidates: [],
	...values,
});

describe('results of matching', () => {
	it('show the guide channel that fits, otherwise the most similar one', () => {
		const candidates = [candidate(1, 90), candidate(2, 90)];
		expect(bestOf(match(7, { epg_data_id: 2, candidates }))?.epg_data_id).toBe(2);
		expect(bestOf(match(7, { decision: 'tie', candidates }))?.epg_data_id).toBe(1);
		expect(bestOf(match(7, { decision: 'no_name' }))).toBeUndefined();
	});

	it('are listed by their decision', () => {
		const all = [match(1, {}), match(2, { decision: 'tie' })];
		expect(shownOf(all, null)).toHaveLength(2);
		expect(shownOf(all, 'tie').map((it) => it.channel_id)).toEqual([2]);
	});

	it('are linked without those that were left out', () => {
		const left = new Set([2]);
		expect(rowsWithout(null, new Set())).toEqual({});
		expect(rowsWithout(null, left)).toEqual({ except: [2] });
		expect(rowsWithout({ ids: [1, 2] }, left)).toEqual({ ids: [1] });
		const filter = { search: 'x' };
		expect(rowsWithout({ filter, except: [5] }, left)).toEqual({ filter, except: [5, 2] });
	});
});
