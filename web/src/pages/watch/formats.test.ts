import { afterEach, expect, test, vi } from 'vitest';
import { OUTPUT_FORMATS } from '../common/outputFormats';
import { abilitiesOf, choiceFrom, choiceOf, formatsOf, pathOf, withToken, type Abilities } from './formats';

afterEach(() => vi.unstubAllGlobals());

const NOTHING: Abilities = {
	hasMediaSource: false,
	hasManagedMediaSource: false,
	playsHls: false,
	playsMp4: false,
	isApple: false,
};
const CHROMIUM: Abilities = { ...NOTHING, hasMediaSource: true, playsMp4: true };
const PHONE: Abilities = { ...NOTHING, playsHls: true, playsMp4: true, isApple: true };

test.each([
	['Chromium and Firefox', CHROMIUM, ['mpegts', 'hls-script', 'fmp4']],
	['browsers that also play HLS', { ...CHROMIUM, playsHls: true }, ['mpegts', 'hls-script', 'hls', 'fmp4']],
	['Safari of computers', { ...PHONE, hasMediaSource: true }, ['mpegts', 'hls', 'hls-script', 'fmp4']],
	['Safari of older phones', PHONE, ['hls', 'fmp4']],
	['Safari of phones', { ...PHONE, hasManagedMediaSource: true }, ['hls', 'hls-script', 'fmp4']],
	['a simple browser of a TV', { ...NOTHING, playsMp4: true }, ['fmp4']],
	['a browser without H.264', NOTHING, []],
])('the formats for %s', (_name, abilities, formats) => {
	expect(formatsOf(abilities, OUTPUT_FORMATS)).toEqual(formats);
});

test('formats that the user may not play are left out, and a chosen one is the only one', () => {
	expect(formatsOf(CHROMIUM, ['m3u8'])).toEqual(['hls-script']);
	expect(formatsOf(CHROMIUM, ['mp4', 'ts'])).toEqual(['mpegts', 'fmp4']);
	expect(formatsOf(CHROMIUM, OUTPUT_FORMATS, 'hls')).toEqual(['hls-script']);
	expect(formatsOf({ ...CHROMIUM, playsHls: true }, OUTPUT_FORMATS, 'hls')).toEqual(['hls-script', 'hls']);
	expect(formatsOf(CHROMIUM, ['m3u8'], 'mpegts')).toEqual([]);
	expect([choiceOf('hls-script'), choiceOf('fmp4')]).toEqual(['hls', 'fmp4']);
	expect([choiceFrom('hls'), choiceFrom('hls-script'), choiceFrom(null)]).toEqual(['hls', null, null]);
});

test('a browser is asked what it plays', () => {
	const phone = { canPlayType: (type: string) => (type.includes('mpegurl') ? 'maybe' : '') } as const;
	vi.stubGlobal('MediaSource', undefined);
	vi.stubGlobal('navigator', { vendor: 'Apple Computer, Inc.' });
	expect(abilitiesOf(phone)).toEqual({ ...NOTHING, playsHls: true, isApple: true });
	vi.stubGlobal('MediaSource', class {});
	vi.stubGlobal('ManagedMediaSource', class {});
	const found = abilitiesOf({ canPlayType: () => '' });
	expect([found.hasMediaSource, found.hasManagedMediaSource]).toEqual([true, true]);
});

test('each format has its address, with a token where no header can be sent', () => {
	const uuid = '11111111-1111-4111-8111-111111111111';
	expect(pathOf('mpegts', uuid)).toBe(`/proxy/ts/stream/${uuid}?output_format=mpegts`);
	expect(withToken(pathOf('hls', uuid), 'a.b=')).toBe(`/proxy/hls/${uuid}/index.m3u8?token=a.b%3D`);
	expect(pathOf('hls-script', uuid)).toBe(`/proxy/hls/${uuid}/index.m3u8?container=fmp4&ll=1`);
	expect(withToken(pathOf('fmp4', uuid), 'a')).toBe(`/proxy/ts/stream/${uuid}?output_format=fmp4&token=a`);
	expect(pathOf('mpegts', '../x')).toBe('/proxy/ts/stream/..%2Fx?output_format=mpegts');
});
