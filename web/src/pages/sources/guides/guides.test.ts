import { describe, expect, it } from 'vitest';
import {
	bodyOf,
	EMPTY_GUIDE,
	hasOffset,
	hasTimeZone,
	isFetched,
	nameFor,
	progressOf,
	unscheduled,
	type Guide,
} from './guides';

describe('guide sources', () => {
	it('are named after the file or the host', () => {
		expect(nameFor('', new File([], 'Europe.xml.gz'))).toBe('Europe');
		expect(nameFor('', new File([], 'Europe'))).toBe('Europe');
		expect(nameFor(' http://guide.example:80/x.xml ', null)).toBe('guide.example');
		expect(nameFor('no address', null)).toBe('');
	});

	it('send no empty password, and 0 in place of no offset', () => {
		expect(bodyOf({ password: '', offset_minutes: null })).toEqual({ offset_minutes: 0 });
		expect(bodyOf({ password: 'p', offset_minutes: -90, name: 'x' })).toEqual({
			password: 'p',
			offset_minutes: -90,
			name: 'x',
		});
		expect(bodyOf({ default_time_zone: null })).toEqual({ default_time_zone: null });
	});

	it('have a zone and an offset as far as their times are their own', () => {
		const kinds = ['xmltv', 'panel', 'schedules_direct', 'stream', 'dummy', 'written'] as const;
		expect(kinds.filter((source_type) => hasTimeZone({ source_type }))).toEqual(['xmltv', 'panel']);
		expect(kinds.filter((source_type) => !hasOffset({ source_type }))).toEqual(['dummy', 'written']);
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
