import { expect, it } from 'vitest';
import { headersOf, linesOfHeaders } from './headers';

it('each line is a header, and blank lines are none', () => {
	const headers = { Referer: 'http://a.example:80/', 'X-Key': 'a b' };
	expect(headersOf('Referer: http://a.example:80/\n\n  X-Key :a b \r\n')).toEqual({ headers });
	expect(headersOf(linesOfHeaders(headers))).toEqual({ headers });
	expect(headersOf(' \n')).toEqual({ headers: {} });
	expect(headersOf('X-Empty:')).toEqual({ headers: { 'X-Empty': '' } });
	expect(linesOfHeaders({})).toBe('');
});

it('a line without a name, and a name that is there twice, are refused', () => {
	expect(headersOf('Cookie a=1; token=secret')).toEqual({
		problem: { kind: 'no_colon', line: 'Cookie a=1; token=se' },
	});
	expect(headersOf(': value')).toEqual({ problem: { kind: 'no_colon', line: ': value' } });
	expect(headersOf('Cookie: a\ncookie: b')).toEqual({ problem: { kind: 'twice', name: 'cookie' } });
});
