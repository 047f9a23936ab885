import { number } from '$lib/i18n';
import type { text } from '../../pages/slots/text';
import type { Texts } from '../catalogue';

export const slots: Texts<typeof text> = {
	intro: 'Każde połączenie z dostawcą zajmuje miejsce w profilu konta.',
	idle: 'Żadne połączenie nie jest w użyciu.',
	none: 'Brak profili kont',
	noneText: 'Połączenia pojawią się tu, gdy będzie źródło.',
	addSource: 'Dodaj źródło',
	free: 'wolne',
	closing: 'zamykanie',
	cooling: (seconds) => `zwolni się za ${seconds} s`,
	unlimited: 'bez limitu',
	discovered: (n) => `wykryty limit: ${number(n)}`,
	inUse: (used, max) => `w użyciu ${number(used)} z ${number(max)}`,
	used: (n) => `w użyciu: ${number(n)}`,
	waiting: 'Czekają',
	purposes: { live: '', preview: 'podgląd', trial: 'test', vod: 'film lub odcinek' },
	since: (time) => `rozpoczęte ${time}`,
	groups: 'Grupy serwerów',
	inactive: 'nieaktywny',
	all: (n) => `Pokaż wszystkie (${number(n)})`,
};
