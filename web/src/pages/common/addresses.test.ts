import { expect, it } from 'vitest';
import { inOrder, isLoopback, type PlayerAddress } from './addresses';

it('addresses that only this machine reaches are told apart', () => {
	const local = [
		'http://localhost:9191',
		'http://127.0.0.1:9191',
		'http://127.8.0.1',
		'http://[::1]:9191',
		'http://tv.localhost',
	];
	expect(local.map(isLoopback)).toEqual(local.map(() => true));
	const others = ['http://192.168.1.5:9191', 'https://tv.example.org', 'http://[fd00::1]', 'no address'];
	expect(others.map(isLoopback)).toEqual(others.map(() => false));
});

it('served addresses are listed, those that need a header apart', () => {
	const address = (kind: PlayerAddress['kind'], more: Partial<PlayerAddress> = {}): PlayerAddress => ({
		kind,
		url: `http://tv/${kind}`,
		channel_profile: null,
		header: null,
		is_served: true,
		...more,
	});
	const all = [
		address('xtream'),
		address('m3u'),
		address('xmltv', { is_served: false }),
		address('m3u_with_key', { header: 'X-API-Key' }),
		address('tuner'),
	];
	const { plain, withHeader } = inOrder(all);
	expect(plain.map((it) => it.kind)).toEqual(['m3u', 'tuner']);
	expect(withHeader.map((it) => it.kind)).toEqual(['m3u_with_key']);
});
