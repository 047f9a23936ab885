import { describe, expect, test } from 'vitest';
import { changedIds, readFrame, readStats } from './frames';

describe('frames', () => {
	test('anything but a frame is ignored', () => {
		for (const text of ['', 'x', 'null', '7', '{}', '{"data":null}', '{"data":{"type":7}}', new Blob()]) {
			expect(readFrame(text)).toBeNull();
		}
		expect(readFrame('{"type":"update","data":{"type":"new_kind","x":1}}')).toEqual({
			type: 'new_kind',
			x: 1,
		});
	});

	test('statistics are a text', () => {
		const stats = JSON.stringify({ count: 0, channels: [] });
		const frame = readFrame(JSON.stringify({ type: 'update', data: { type: 'channel_stats', stats } }));
		expect(readStats(frame!)?.channels).toEqual([]);
		expect(readFrame('{"data":{"type":"channel_stats","stats":"{"}}')).toBeNull();
	});

	test('statistics without channels are none', () => {
		expect(readStats({ type: 'channel_stats' })).toBeNull();
		const stats = readStats({
			type: 'channel_stats',
			sequence: 3,
			timestamp: 't',
			stats: { count: 0, channels: [] },
		});
		expect(stats).toEqual({ sequence: 3, timestamp: 't', channels: [], totals: null });
	});

	test('changes name their records, or say that they are not known', () => {
		const frame = {
			type: 'changed',
			collections: [
				{ collection: 'channels', ids: [1, 2] },
				{ collection: 'logos', ids: null },
			],
		};
		expect(changedIds(frame, ['channels'])).toEqual(new Set([1, 2]));
		expect(changedIds(frame, ['streams'])).toBeUndefined();
		expect(changedIds(frame, ['channels', 'logos'])).toBeNull();
		expect(changedIds({ type: 'changed', collections: null }, ['streams'])).toBeNull();
	});
});
