import { expect, it } from 'vitest';
import { after, nextStep, openSteps, shownStep, type Facts } from './steps';

const nothing: Facts = { hasAdmin: false, isAdmin: false, accounts: 0, streams: 0, channels: 0 };
const admin: Facts = { ...nothing, hasAdmin: true, isAdmin: true };
const source: Facts = { ...admin, accounts: 1, streams: 20 };
const channels: Facts = { ...source, channels: 3 };

it('the next step follows from the data', () => {
	expect(nextStep(nothing)).toBe('admin');
	expect(nextStep({ ...nothing, hasAdmin: true })).toBe('admin');
	expect(nextStep(admin)).toBe('source');
	// The list could not be fetched.
	expect(nextStep({ ...admin, accounts: 1 })).toBe('source');
	expect(nextStep(source)).toBe('groups');
	expect(nextStep(channels)).toBe('addresses');
});

it('no step opens before what it needs exists', () => {
	expect([...openSteps(nothing)]).toEqual(['admin']);
	expect(openSteps(admin).has('groups')).toBe(false);
	expect(openSteps(source).has('channels')).toBe(true);
	expect(openSteps(source).has('test')).toBe(false);
	expect(openSteps(channels).has('test')).toBe(true);
});

it('the wanted step is shown if it can be opened', () => {
	expect(shownStep(source, 'channels')).toBe('channels');
	expect(shownStep(source, 'test')).toBe('groups');
	expect(shownStep(source, 'nonsense')).toBe('groups');
	expect(shownStep(nothing, 'addresses')).toBe('admin');
});

it('the steps follow each other', () => {
	expect(after('admin')).toBe('source');
	expect(after('test')).toBe('test');
});
