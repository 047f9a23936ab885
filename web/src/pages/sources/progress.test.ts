import { expect, it } from 'vitest';
import { fraction, statusOf, statusOfFrame, type Refresh } from './progress';

const refresh = (more: Partial<Refresh>): Refresh => ({
	account: 2,
	account_name: 'Home',
	task_id: null,
	phase: 'done',
	bytes: 0,
	entries: 0,
	streams_created: 0,
	streams_updated: 0,
	streams_gone: 0,
	outcome: 'success',
	message: null,
	message_code: null,
	started_at: null,
	tried_at: null,
	good_at: null,
	good_entries: 0,
	...more,
});

it('the state of a refresh follows from its phase and outcome', () => {
	expect(statusOf(undefined).state).toBe('never');
	expect(statusOf(refresh({ phase: null, outcome: null })).state).toBe('never');
	expect(statusOf(refresh({ phase: 'parsing', outcome: null })).state).toBe('running');
	expect(statusOf(refresh({})).state).toBe('good');
	expect(statusOf(refresh({ outcome: 'error', message: '401' })).message).toBe('401');
	expect(statusOf(refresh({ outcome: 'pending_confirmation' })).state).toBe('ask');
	// A shutdown interrupted it.
	expect(statusOf(refresh({ outcome: null })).state).toBe('bad');
});

it('frames of the WebSocket say the same', () => {
	const running = statusOfFrame({ account: 2, action: 'downloading', status: 'fetching', bytes: 1024 });
	expect(running).toMatchObject({ state: 'running', phase: 'fetching', bytes: 1024 });
	const done = statusOfFrame({ action: 'done', status: 'success', streams_processed: 9, streams_created: 4 });
	expect(done).toMatchObject({ state: 'good', entries: 9, created: 4 });
	expect(statusOfFrame({ action: 'done', status: 'pending_confirmation' })?.state).toBe('ask');
	expect(statusOfFrame({ action: 'dancing' })).toBeNull();
	expect(statusOfFrame({ action: 'parsing', streams_processed: 'many' })?.entries).toBe(0);
});

it('the share of a list is an estimate by the last good one', () => {
	const at = (entries: number) => statusOf(refresh({ phase: 'parsing', outcome: null, entries }));
	expect(fraction(at(50), 200)).toBe(0.25);
	expect(fraction(at(500), 200)).toBe(0.99);
	expect(fraction(at(50), 0)).toBeUndefined();
	expect(fraction(statusOf(refresh({})), 200)).toBeUndefined();
});
