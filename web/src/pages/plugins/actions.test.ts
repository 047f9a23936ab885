import { expect, test } from 'vitest';
import { isBadResult, messageOf, outcomeOf, readAction, withProgress, type Run } from './actions';

const run = (id: string, more: Partial<Run> = {}): Run =>
	({ id, action: 'go', status: 'running', percent: null, message: null, result: null, ...more }) as Run;

test('an action asks only if it declares a question', () => {
	const confirmOf = (confirm: unknown) => readAction({ id: 'go', confirm }).confirm;
	expect([confirmOf(undefined), confirmOf(false), confirmOf({ required: false, title: 'Sure?' })]).toEqual([
		null,
		null,
		null,
	]);
	expect(confirmOf(true)).toEqual({ title: 'Run this action?', text: '' });
	expect(confirmOf({ title: 'Sure?', message: 'It takes an hour.' })).toEqual({
		title: 'Sure?',
		text: 'It takes an hour.',
	});
	expect(readAction({ id: 'go', button_label: 'Go', events: ['channel_start', 1] })).toMatchObject({
		label: 'go',
		button: 'Go',
		events: ['channel_start'],
	});
});

test('progress changes the run, and everything else is read again', () => {
	const frame = { type: 'plugin_run', run: 'a', status: 'running', percent: 40, message: 'Halfway' };
	expect(withProgress([run('b'), run('a')], frame)).toMatchObject([
		{ id: 'b', percent: null },
		{ id: 'a', percent: 40, message: 'Halfway' },
	]);
	expect(withProgress([run('b')], frame)).toBeNull();
	expect(withProgress([run('a')], { ...frame, status: 'ended' })).toBeNull();
});

test('what an action returns may be a failure', () => {
	expect(outcomeOf({ status: 'ok', message: '12 channels' })).toEqual({
		isGood: true,
		message: '12 channels',
	});
	expect(outcomeOf({ status: 'error', message: 'Unknown action: x' }).isGood).toBe(false);
	expect(outcomeOf({ success: false, error: 'No channels' })).toEqual({
		isGood: false,
		message: 'No channels',
	});
	expect(outcomeOf({}).message).toBe('The action has ended.');
	expect(isBadResult(run('a', { result: { status: 'error' } }))).toBe(true);
	expect(isBadResult(run('a'))).toBe(false);
	expect(messageOf(run('a', { result: { message: 'Done' }, message: 'Halfway' }))).toBe('Done');
	expect(messageOf(run('a', { message: 'bang' }))).toBe('bang');
});
