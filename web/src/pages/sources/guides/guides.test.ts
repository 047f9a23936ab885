import { describe, expect, it } from 'vitest';
import { EMPTY_GUIDE, isFetched, nameFor, progressOf, unscheduled, type Guide } from './guides';

describe('guide sources', () => {
	it('are named after the file or the host', () => {
		expect(nameFor('', new File([], 'Europe.xml.gz'))).toBe('Europe');
		expect(nameFor('', new File([], 'Europe'))).toBe('Europe');
		expect(nameFor(' http://guide.example:80/x.xml ', null)).toBe('guide.example');
		expect(nameFor('no address', null)).toBe('');
	});

	it('report their own progress only, and no values beyond its ends', () => {
		const frame = { source: 3, status: 'parsing', progress: 250, programs: 12, message: 'x' };
		expect(progressOf(frame, 3)).toEqual({ status: 'parsing', share: 1, programmes: 12, message: 'x' });
		expect(progressOf(frame, 4)).toBeNull();
		expect(progressOf({ ...frame, status: 'new' }, 3)).toBeNull();
		expect(progressOf({ source: 3, status: 'error', progress: 'x' }, 3)).toMatchObject({
			share: 0,
			programmes: 0,
		});
	});

	it('are refreshed every 24 hours unless the admin says otherwise', () => {
		expect(EMPTY_GUIDE.refresh_interval).toBe(24);
		const guides = [{ needs_interval: true }, { needs_interval: false }] as Guide[];
		expect(unscheduled(guides)).toEqual([guides[0]]);
	});

	it('of computed kinds are not fetched', () => {
		expect(isFetched({ source_type: 'xmltv' })).toBe(true);
		expect(isFetched({ source_type: 'dummy' })).toBe(false);
	});
});
