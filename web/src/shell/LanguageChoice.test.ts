import { fireEvent, render, screen, waitFor } from '@testing-library/svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { chosenLanguage } from '$lib/i18n';
import { router } from '$lib/router';
import LanguageChoice from './LanguageChoice.svelte';

const field = (): HTMLSelectElement => screen.getByLabelText('Language');

beforeEach(() => {
	localStorage.clear();
	history.replaceState(null, '', '/me');
	router.read();
	vi.spyOn(location, 'reload').mockImplementation(() => undefined);
});
afterEach(() => {
	router.ask = null;
	vi.restoreAllMocks();
});

test('another language is kept, and the page is loaded again', async () => {
	render(LanguageChoice);
	expect([...field().options].map((it) => it.text)).toEqual([
		'Like the browser',
		'English',
		'Deutsch',
		'Español',
		'Français',
		'Italiano',
		'Polski',
		'Português',
	]);
	await fireEvent.change(field(), { target: { value: '2' } });
	await waitFor(() => expect(location.reload).toHaveBeenCalledOnce());
	expect(chosenLanguage()).toBe('de');
	await fireEvent.change(field(), { target: { value: '0' } });
	await waitFor(() => expect(chosenLanguage()).toBe(null));
});

test('with unsaved input it asks first, and stays if the answer is no', async () => {
	const end = router.guard(() => true);
	router.ask = vi.fn(async () => false);
	render(LanguageChoice);
	await fireEvent.change(field(), { target: { value: '4' } });
	await waitFor(() => expect(router.ask).toHaveBeenCalledOnce());
	await waitFor(() => expect(field().value).toBe('0'));
	expect([chosenLanguage(), vi.mocked(location.reload).mock.calls.length]).toEqual([null, 0]);
	router.ask = async () => true;
	await fireEvent.change(field(), { target: { value: '4' } });
	await waitFor(() => expect(location.reload).toHaveBeenCalledOnce());
	expect([chosenLanguage(), router.isDirty]).toEqual(['fr', false]);
	end();
});

test('the code of the set-up page is in the address again before it is loaded', async () => {
	history.replaceState(null, '', '/setup#secret');
	router.read();
	history.replaceState(null, '', '/setup');
	render(LanguageChoice);
	await fireEvent.change(field(), { target: { value: '1' } });
	await waitFor(() => expect(location.reload).toHaveBeenCalledOnce());
	expect(location.hash).toBe('#secret');
});
