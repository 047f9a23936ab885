import { expect, it } from 'vitest';
import { planChannels } from './preview';

const stream = (id: number, name: string, more: { tvg_id?: string; stream_chno?: number } = {}) => ({
	id,
	name,
	tvg_id: more.tvg_id ?? null,
	stream_chno: more.stream_chno ?? null,
});
const shown = (plan: ReturnType<typeof planChannels>) =>
	plan.channels.map((it) => `${it.number} ${it.name} ${it.streams}`);

it('numbers of the provider count if they are free, otherwise the lowest free ones', () => {
	const streams = [
		stream(1, 'A', { stream_chno: 5 }),
		stream(2, 'B'),
		stream(3, 'C', { stream_chno: 5 }),
		stream(4, 'D'),
	];
	const known = [{ name: 'Old', tvg_id: null, channel_number: 2 }];
	expect(shown(planChannels(streams, known, null, null))).toEqual(['5 A 1', '1 B 1', '3 C 1', '4 D 1']);
});

it('numbers from a first one on follow each other and skip taken ones', () => {
	const streams = [stream(1, 'A', { stream_chno: 5 }), stream(2, 'B'), stream(3, 'C')];
	const known = [{ name: 'Old', tvg_id: null, channel_number: 101 }];
	expect(shown(planChannels(streams, known, null, 100))).toEqual(['100 A 1', '102 B 1', '103 C 1']);
});

it('streams with the same name become one channel, also one that exists', () => {
	const streams = [stream(1, 'News  One'), stream(2, 'news one'), stream(3, 'Sport')];
	const known = [{ name: 'SPORT', tvg_id: null, channel_number: 9 }];
	const plan = planChannels(streams, known, 'name', null);
	expect(shown(plan)).toEqual(['1 News  One 2']);
	expect(plan.toExisting).toBe(1);
});

it('streams without a guide id are never merged by it', () => {
	const streams = [
		stream(1, 'A', { tvg_id: 'x' }),
		stream(2, 'B', { tvg_id: 'X' }),
		stream(3, 'C'),
		stream(4, 'D'),
	];
	expect(shown(planChannels(streams, [], 'tvg_id', null))).toEqual(['1 A 2', '2 C 1', '3 D 1']);
});
