import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/permissions/text';
import type { Texts } from '../catalogue';

const users = (n: number): string => `${number(n)} Benutzer`;

export const permissions: Texts<typeof text> = {
	back: 'Benutzer',
	intro:
		'Diese Berechtigungen wurden vergeben, bevor sie eine Wirkung hatten, oder durch einen Import. Sie erlauben nichts, bis Sie sie bestätigen.',
	effects: 'Was sie erlauben',
	permission: 'Berechtigung',
	effect: 'Wirkung',
	list: 'Benutzer mit unbestätigten Berechtigungen',
	columns: { user: 'Benutzer', permissions: 'Berechtigungen' },
	search: 'Benutzer suchen',
	none: 'Nichts zu bestätigen',
	noneText: 'Alle Berechtigungen mit einer Wirkung sind bestätigt.',
	noMatch: 'Kein Benutzer gefunden',
	confirm: 'Bestätigen',
	confirmAll: (n) => `Für alle ${number(n)} bestätigen`,
	confirmOf: (name) => `Berechtigungen von ${name} bestätigen`,
	ask: (n) => `Berechtigungen von ${plural(n, '1 Benutzer', `${number(n)} Benutzern`)} bestätigen?`,
	askText: 'Sie wirken sofort. Um eine zurückzunehmen, entfernen Sie sie später beim Benutzer.',
	confirmed: (n) => `Für ${users(n)} bestätigt.`,
	notice: (n) => `${users(n)} ${plural(n, 'hat', 'haben')} Berechtigungen, die niemand bestätigt hat`,
	noticeText: 'Sie wirken erst, wenn ein Admin sie bestätigt.',
	look: 'Ansehen',
};
