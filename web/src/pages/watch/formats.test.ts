import { afterEach, expect, test, vi } from 'vitest';
import { abilitiesOf, formatsOf, pathOf, withToken } from './formats';

afterEach(() => vi.unstubAllGlobals());

test.each([
	['Chromium and Firefox', { hasMediaSource: true, playsHls: false, playsMp4: true }, ['mpegts']],
	['Safari of computers', { hasMediaSource: true, playsHls: true, playsMp4: true }, ['mpegts', 'hls']],
	['Safari of phones', { hasMediaSource: false, playsHls: true, playsMp4: true }, ['hls']],
	['a simple browser of a TV', { hasMediaSource: false, playsHls: false, playsMp4: true }, ['fmp4']],
	['a browser without H.264', { hasMediaSource: false, playsHls: false, playsMp4: false }, []],
])('the formats for %s', (_name, abilities, formats) => {
	expect(formatsOf(abilities)).toEqual(formats);
});

test('a browser is asked what it plays', () => {
	const phone = { canPlayType: (type: string) => (type.includes('mpegurl') ? 'maybe' : '') } as const;
	vi.stubGlobal('MediaSource', undefined);
	expect(abilitiesOf(phone)).toEqual({ hasMediaSource: false, playsHls: true, playsMp4: false });
	vi.stubGlobal('MediaSource', class {});
	expect(abilitiesOf({ canPlayType: () => '' }).hasMediaSource).toBe(true);
});

test('each format has its address, with a token where no header can be sent', () => {
	const uuid = '11111111-1111-4111-8111-111111111111';
	expect(pathOf('mpegts', uuid)).toBe(`/proxy/ts/stream/${uuid}`);
	expect(withToken(pathOf('hls', uuid), 'a.b=')).toBe(`/proxy/hls/${uuid}/index.m3u8?token=a.b%3D`);
	expect(withToken(pathOf('fmp4', uuid), 'a')).toBe(`/proxy/ts/stream/${uuid}?output_format=fmp4&token=a`);
	expect(pathOf('mpegts', '../x')).toBe('/proxy/ts/stream/..%2Fx');
});
