import { describe, expect, test } from 'vitest';
import { placeOf, timelineOf } from './timeline';

const at = (seconds: number): string => new Date(1_700_000_000_000 + seconds * 1000).toISOString();

function entry(seconds: number, event: string, stream: number | null, more: Record<string, unknown> = {}) {
	return {
		timestamp: at(seconds),
		event,
		state: 'playing',
		stream_id: stream,
		stream_name: stream === null ? null : `S${stream}`,
		account_name: 'A',
		cause: null,
		detail: '',
		gap_ms: null,
		bytes_in: 0,
		m3u_profile_id: 1,
		upstream_status: null,
		...more,
	};
}

const run = (entries: unknown[], ended: number | null = null) =>
	({
		started_at: at(0),
		ended_at: ended === null ? null : at(ended),
		dropped: 0,
		nodes: [],
		entries,
	}) as never;

describe('timelineOf', () => {
	test('a failover has a lane for each stream, and a gap with its length and cause', () => {
		const made = timelineOf(
			run([
				entry(0, 'opening', 1),
				entry(1, 'started', 1, { gap_ms: 1000 }),
				entry(10, 'lost', 1, { cause: 'stall', detail: 'video stopped' }),
				entry(10, 'opening', 2),
				entry(12, 'failed_over', 2, { gap_ms: 2000 }),
			]),
			1_700_000_020_000,
		);
		expect(made.lanes.map((it) => [it.name, it.segments.map((s) => [s.kind, s.until - s.from])])).toEqual([
			[
				'S1',
				[
					['opening', 1000],
					['playing', 9000],
				],
			],
			[
				'S2',
				[
					['opening', 2000],
					['playing', 8000],
				],
			],
		]);
		expect(made.gaps).toEqual([
			{ from: 1_700_000_010_000, until: 1_700_000_012_000, cause: 'stall', detail: 'video stopped' },
		]);
		expect(made.lanes[0]?.losses).toEqual([{ at: 1_700_000_010_000, cause: 'stall' }]);
		expect(placeOf(made, 1_700_000_010_000)).toBe(0.5);
	});

	test('a switch without a gap ends the old stream when the new one starts', () => {
		const made = timelineOf(
			run(
				[
					entry(0, 'started', 1),
					entry(4, 'opening', 2),
					entry(5, 'switched', 2, { gap_ms: 0 }),
					entry(9, 'ended', null),
				],
				9,
			),
			0,
		);
		expect(made.gaps).toEqual([]);
		expect(made.lanes[0]?.segments).toEqual([
			{ kind: 'playing', from: 1_700_000_000_000, until: 1_700_000_005_000 },
		]);
		expect(made.lanes[1]?.segments.at(-1)?.until).toBe(1_700_000_009_000);
	});

	test('a stream that was silent plays on in its lane', () => {
		const made = timelineOf(
			run([entry(0, 'started', 1), entry(5, 'silent', 1), entry(6, 'resumed', 1)], 8),
			0,
		);
		expect(made.lanes[0]?.segments.map((it) => it.kind)).toEqual(['playing', 'silent', 'playing']);
	});

	test('a run without entries has a length', () => {
		const made = timelineOf(run([], 0), 0);
		expect(placeOf(made, made.until)).toBe(1);
	});

	test('what a node does leaves the streams of another one alone', () => {
		const made = timelineOf(
			run([
				entry(0, 'started', 1, { node: 'attic' }),
				entry(1, 'started', 1, { node: 'cellar' }),
				entry(5, 'ended', null, { node: 'cellar' }),
			]),
			1_700_000_009_000,
		);
		expect(made.lanes.map((it) => [it.node, it.segments.map((s) => s.until - s.from)])).toEqual([
			['attic', [9000]],
			['cellar', [4000]],
		]);
	});
});
