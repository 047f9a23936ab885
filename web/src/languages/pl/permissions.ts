import { number } from '$lib/i18n';
import type { text } from '../../pages/permissions/text';
import type { Texts } from '../catalogue';
import { nUsers } from './nouns';

export const permissions: Texts<typeof text> = {
	back: 'Użytkownicy',
	intro:
		'Te uprawnienia nadano, zanim miały skutek, albo przy imporcie. Na nic nie pozwalają, dopóki ich nie potwierdzisz.',
	effects: 'Na co pozwalają',
	permission: 'Uprawnienie',
	effect: 'Skutek',
	list: 'Użytkownicy z niepotwierdzonymi uprawnieniami',
	columns: { user: 'Użytkownik', permissions: 'Uprawnienia' },
	search: 'Szukaj użytkowników',
	none: 'Nie ma uprawnień do potwierdzenia',
	noneText: 'Wszystkie uprawnienia mające skutek są potwierdzone.',
	noMatch: 'Żaden użytkownik nie pasuje',
	confirm: 'Potwierdź',
	confirmAll: (n) => `Potwierdź dla wszystkich (${number(n)})`,
	confirmOf: (name) => `Potwierdź uprawnienia: ${name}`,
	ask: (n) => `Potwierdzić uprawnienia (${nUsers(n)})?`,
	askText: 'Zadziałają od razu. Aby później któreś cofnąć, usuń je użytkownikowi.',
	confirmed: (n) => `Potwierdzono: ${nUsers(n)}.`,
	notice: (n) => `Niepotwierdzone uprawnienia: ${nUsers(n)}`,
	noticeText: 'Nie działają, dopóki administrator ich nie potwierdzi.',
	look: 'Zobacz',
};
