import { number } from '$lib/i18n';
import type { text } from '../../pages/slots/text';
import type { Texts } from '../catalogue';

export const slots: Texts<typeof text> = {
	intro: 'Jede Verbindung zu einem Anbieter belegt einen Platz eines Kontoprofils.',
	idle: 'Keine Verbindung ist belegt.',
	none: 'Keine Kontoprofile',
	noneText: 'Verbindungen erscheinen hier, sobald es eine Quelle gibt.',
	addSource: 'Quelle hinzufügen',
	free: 'frei',
	closing: 'schließt',
	cooling: (seconds) => `frei in ${seconds} s`,
	unlimited: 'ohne Limit',
	discovered: (n) => `Limit ${number(n)} festgestellt`,
	inUse: (used, max) => `${number(used)} von ${number(max)} belegt`,
	used: (n) => `${number(n)} belegt`,
	waiting: 'Wartend',
	purposes: { live: '', preview: 'Vorschau', trial: 'Test', vod: 'Film oder Folge' },
	since: (time) => `seit ${time}`,
	groups: 'Servergruppen',
	inactive: 'inaktiv',
	all: (n) => `Alle ${number(n)} anzeigen`,
};
