import { expect, it } from 'vitest';
import { withText } from './zones';

it('zones are found by any part of their names', () => {
	const names = ['America/New_York', 'Europe/Berlin', 'Europe/Paris', 'UTC'];
	expect(withText(names, ' new york ')).toEqual(['America/New_York']);
	expect(withText(names, 'EUROPE')).toEqual(['Europe/Berlin', 'Europe/Paris']);
	expect(withText(names, '')).toEqual(names);
});
