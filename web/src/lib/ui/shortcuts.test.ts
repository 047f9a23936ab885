import { afterEach, expect, test } from 'vitest';
import { hasShortcuts, isField, setShortcuts, shortcut } from './shortcuts';

const key = (key: string, more: object = {}) => ({
	key,
	ctrlKey: false,
	metaKey: false,
	altKey: false,
	...more,
});

afterEach(() => localStorage.clear());

test('a field takes single keys itself', () => {
	expect(shortcut(key('?'), false, true)).toBe('shortcuts');
	expect(shortcut(key('/'), false, true)).toBe('search');
	expect(shortcut(key('?'), true, true)).toBeNull();
	expect(shortcut(key('a'), false, true)).toBeNull();
	expect(shortcut(key('/', { ctrlKey: true }), false, true)).toBeNull();
});

test('single keys can be switched off, the palette stays', () => {
	setShortcuts(false);
	expect(hasShortcuts()).toBe(false);
	expect(shortcut(key('?'), false, hasShortcuts())).toBeNull();
	expect(shortcut(key('k', { ctrlKey: true }), true, hasShortcuts())).toBe('palette');
	expect(shortcut(key('K', { metaKey: true }), false, hasShortcuts())).toBe('palette');
	setShortcuts(true);
	expect(hasShortcuts()).toBe(true);
});

test('inputs are fields, buttons are not', () => {
	expect(isField(document.createElement('input'))).toBe(true);
	expect(isField(document.createElement('button'))).toBe(false);
	expect(isField(null)).toBe(false);
});
