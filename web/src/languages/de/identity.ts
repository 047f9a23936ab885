import { number, plural } from '$lib/i18n';
import type { identityText } from '../../pages/sources/identityText';
import type { Texts } from '../catalogue';

const streams = (n: number) => plural(n, '1 Stream', `${number(n)} Streams`);

export const identity: Texts<typeof identityText> = {
	intro:
		'Anbieter ändern Adressen, Namen und Gruppen. Eine Aktualisierung vergleicht jeden Eintrag der Liste mit den bekannten Streams nach diesen Schlüsseln, vom ersten zum letzten. Ein erkannter Stream behält seine Sender und Ihre Änderungen. Ein Schlüssel gilt nur, wenn kein anderer Eintrag und kein anderer Stream denselben Wert hat.',
	keys: 'Schlüssel, an denen Streams erkannt werden',
	keyOf: {
		panel_id: ['Nummer beim Panel', 'Die Nummer in der Adresse eines Panels: …/user/password/NUMMER.ts.'],
		address: ['Adresse', 'Die ganze Adresse. Sie wird immer verglichen.'],
		bare_address: [
			'Adresse ohne Token',
			'Ohne die Teile, die sich ändern: Token, Ablaufzeiten und die Zugangsdaten der Quelle.',
		],
		guide_id: ['Guide-ID', 'Die ID in der Liste: tvg-id, sonst channel-id, sonst tvc-guide-stationid.'],
		name_and_group: ['Name und Gruppe', 'Beide zusammen, sodass ein Name in zwei Gruppen vorkommen kann.'],
		name: [
			'Name',
			'Der schwächste Schlüssel. Eine Liste, in der nur Namen übereinstimmen, wartet auf Ihre Entscheidung.',
		],
	},
	recognises: (n) => `Erkennt ${streams(n)}.`,
	preview: 'Aktualisierung in der Vorschau',
	defaultOrder: 'Standardreihenfolge',
	saved: 'Gespeichert. Gilt ab der nächsten Aktualisierung.',
	read: (n) => `Die Liste hat ${plural(n, '1 Eintrag', `${number(n)} Einträge`)}. Nichts wurde geändert.`,
	waits: 'Die Aktualisierung würde auf Ihre Entscheidung warten:',
	counts: 'Streams nach der Aktualisierung',
	count: {
		unchanged: 'bleiben, wie sie sind',
		moved: 'bekommen eine andere Adresse',
		updated: 'bekommen Namen, Gruppe oder einen anderen Wert neu',
		created: 'sind neu',
		stale: 'sind nicht mehr in der Liste',
		deleted: 'werden entfernt',
		ambiguous: 'könnten mehrere Einträge sein, darum wird keiner genommen',
		leftOut: 'Einträge lassen Filter und Gruppen aus',
	},
	lists: 'Geänderte Streams',
	listOf: { moved: 'Andere Adresse', updated: 'Geändert', created: 'Neu', missing: 'Fehlend' },
	columns: { name: 'Name', host: 'Host', key: 'Erkannt an' },
	listed: (n, of) => `${number(n)} von ${streams(of)} sind aufgeführt.`,
};
