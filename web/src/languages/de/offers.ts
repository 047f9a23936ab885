import { number, plural } from '$lib/i18n';
import type { offersText } from '../../pages/sources/offersText';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} Sender`;

export const offers: Texts<typeof offersText> = {
	intro:
		'Die Playlist nennt diese Programmführer. Lesen Sie sie, um zu sehen, wie viele Ihrer Sender jeder bedienen würde, und fügen Sie die hinzu, die Sie brauchen.',
	emptyTitle: 'Die Playlist nennt keinen Programmführer',
	emptyText: 'Programmführer mit eigener Adresse fügen Sie unter „Quellen“, „Programmführer“ hinzu.',
	readAll: (n) => plural(n, 'Programmführer lesen', `Alle ${number(n)} Programmführer lesen`),
	read: 'Lesen',
	readOne: (address, n) => `Programmführer ${n} lesen: ${address}`,
	reading: (n, of) => `Programmführer ${number(n)} von ${number(of)} wird gelesen`,
	stop: 'Lesen beenden',
	add: 'Als Quelle hinzufügen',
	addOne: (address, n) => `Programmführer ${n} als Quelle hinzufügen: ${address}`,
	added: (name) => `${name} hinzugefügt. Die erste Aktualisierung hat begonnen.`,
	isAdded: 'hinzugefügt',
	open: 'Öffnen',
	openOne: (n) => `Programmführer ${n} öffnen`,
	showAddresses: 'Adressen anzeigen',
	hideAddresses: 'Adressen ausblenden',
	serves: (n, added) =>
		n === 0
			? 'Bedient keinen Ihrer Sender'
			: `Bedient ${channels(n)}, ${added === 0 ? 'alle schon mit Programmführer' : `${number(added)} davon bisher ohne Programmführer`}`,
	inGuide: (n, same) => `${channels(n)} im Programmführer, ${number(same)} mit derselben ID`,
};
