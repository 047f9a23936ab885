import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/lineups/text';
import type { Texts } from '../catalogue';

export const lineups: Texts<typeof text> = {
	add: 'Ajouter un bouquet',
	newTitle: 'Ajouter un bouquet',
	emptyTitle: 'Aucun bouquet',
	emptyText:
		'Un bouquet est un choix de chaînes pour certains utilisateurs ou pour un tuner. Sans bouquet, tout le monde a toutes les chaînes.',
	columns: { name: 'Nom', channels: 'Chaînes', added: 'Nouvelles chaînes' },
	channels: (n) => `${number(n)} ${plural(n, 'chaîne', 'chaînes')}`,
	addsNew: 'ajoutées',
	addsNone: 'laissées de côté',
	name: 'Nom',
	description: 'Description',
	addNew: 'Inclut les nouvelles chaînes',
	addNewHint: 'Un bouquet créé sans ceci commence sans chaînes.',
	showChannels: 'Afficher ses chaînes',
	copy: 'Créer une copie',
	copyName: (name) => `${name} (copie)`,
	saved: 'Enregistré.',
	deleteTitle: (name) => `Supprimer le bouquet ${name}\u00a0?`,
	deleteText: 'Ses chaînes restent. Ses utilisateurs et ses tuners le perdent. C’est irréversible.',
	deleted: (name) => `Bouquet ${name} supprimé.`,
};
