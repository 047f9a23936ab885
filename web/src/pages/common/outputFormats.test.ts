import { expect, test } from 'vitest';
import { outputFormatsOf } from './outputFormats';

test.each([
	[undefined, ['ts', 'm3u8', 'mp4']],
	[null, ['ts', 'm3u8', 'mp4']],
	[
		['rtmp', 7],
		['ts', 'm3u8', 'mp4'],
	],
	[
		['m3u8', 'ts', 'hls'],
		['m3u8', 'ts'],
	],
	['HLS, mpegts', ['m3u8', 'ts']],
	[['fmp4'], ['mp4']],
])('the formats of %j', (property, formats) => {
	expect(outputFormatsOf(property)).toEqual(formats);
});
