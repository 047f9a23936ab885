import { expect, it } from 'vitest';
import { EMPTY_SOURCE, bodyOf, formOf, nameFor, panelLogin } from './newSource';

it('a source without a name is called like its host or file', () => {
	expect(nameFor('url', ' http://tv.example:8080/list.m3u ', null)).toBe('tv.example');
	expect(nameFor('url', 'no address', null)).toBe('');
	expect(nameFor('file', '', new File([''], 'Home list.m3u8.gz'))).toBe('Home list');
});

it('the login of a panel is found in the address of a playlist', () => {
	const address = 'http://tv.example:8080/get.php?username=anna&password=a%26b&type=m3u_plus';
	expect(panelLogin(address)).toEqual({
		server: 'http://tv.example:8080',
		username: 'anna',
		password: 'a&b',
	});
	expect(panelLogin('http://tv.example/list.m3u?username=anna&password=x')).toBeNull();
	expect(panelLogin('http://tv.example/get.php?username=anna')).toBeNull();
	expect(panelLogin('tv.example')).toBeNull();
});

it('a panel is sent with its login, and an empty password stays as it is', () => {
	const input = { ...EMPTY_SOURCE, server_url: 'http://tv', username: 'anna', password: '', max_streams: 2 };
	expect(bodyOf('panel', input, 'TV')).toEqual({
		name: 'TV',
		max_streams: 2,
		server_url: 'http://tv',
		account_type: 'XC',
		username: 'anna',
	});
	expect(bodyOf('url', input, 'TV')).toEqual({
		name: 'TV',
		max_streams: 2,
		server_url: 'http://tv',
		account_type: 'STD',
	});
	expect(bodyOf('panel', { ...input, password: 'p' }, 'TV')).toHaveProperty('password', 'p');
});

it('a portal is sent with the box that it knows, and with nothing that was left empty', () => {
	const input = { ...EMPTY_SOURCE, server_url: ' http://tv/c/ ', mac_address: ' 00:1A:79:12:34:56 ' };
	const body = {
		name: 'TV',
		max_streams: 1,
		server_url: 'http://tv/c/',
		account_type: 'STALKER',
		mac_address: '00:1A:79:12:34:56',
	};
	expect(bodyOf('portal', input, 'TV')).toEqual(body);
	const known = { ...input, serial_number: 'S1', username: 'anna', password: 'p' };
	const more = { serial_number: 'S1', username: 'anna', password: 'p' };
	expect(bodyOf('portal', known, 'TV')).toEqual({ ...body, ...more });
});

it('a file is sent with its name', () => {
	const form = formOf(EMPTY_SOURCE, 'Home', new File(['#EXTM3U'], 'home.m3u'));
	expect([form.get('name'), form.get('max_streams'), (form.get('file') as File).name]).toEqual([
		'Home',
		'1',
		'home.m3u',
	]);
});
