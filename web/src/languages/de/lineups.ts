import { number } from '$lib/i18n';
import type { text } from '../../pages/lineups/text';
import type { Texts } from '../catalogue';

export const lineups: Texts<typeof text> = {
	add: 'Senderliste hinzufügen',
	newTitle: 'Senderliste hinzufügen',
	emptyTitle: 'Noch keine Senderlisten',
	emptyText:
		'Eine Senderliste ist eine Auswahl von Sendern für einige Benutzer oder für einen Tuner. Ohne Senderlisten haben alle sämtliche Sender.',
	columns: { name: 'Name', channels: 'Sender', added: 'Neue Sender' },
	channels: (n) => `${number(n)} Sender`,
	addsNew: 'kommen hinzu',
	addsNone: 'bleiben draußen',
	name: 'Name',
	description: 'Beschreibung',
	addNew: 'Neue Sender gehören dazu',
	addNewHint: 'Ohne das beginnt eine neue Senderliste ohne Sender.',
	showChannels: 'Ihre Sender anzeigen',
	copy: 'Kopie erstellen',
	copyName: (name) => `${name} (Kopie)`,
	saved: 'Gespeichert.',
	deleteTitle: (name) => `Senderliste ${name} löschen?`,
	deleteText:
		'Ihre Sender bleiben. Benutzer und Tuner der Senderliste verlieren sie. Das lässt sich nicht rückgängig machen.',
	deleted: (name) => `Senderliste ${name} gelöscht.`,
};
