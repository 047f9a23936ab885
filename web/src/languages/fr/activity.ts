import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/activity/text';
import type { Texts } from '../catalogue';

export const activity: Texts<typeof text> = {
	tabs: 'Types d’activité',
	events: 'Événements',
	undo: 'Annulation',
	changes: 'Modifications',
	undoThis: 'Annuler l’action',
	undoOf: (name) => `Annuler l’action\u00a0: ${name}`,
	undone: 'Action annulée.',
	noUndo: 'Rien à annuler',
	noUndoText: 'Les actions sur de nombreuses chaînes peuvent être annulées pendant un jour.',
	conflict: 'Ceci ne peut plus être annulé, car ces éléments ont changé depuis :',
	conflictTitle: 'Action non annulée',
	records: (n) => `${number(n)} ${plural(n, 'élément', 'éléments')}`,
	noEvents: 'Aucun événement',
	noEventsText: 'Les événements depuis le démarrage de la passerelle apparaissent ici.',
	noChanges: 'Aucune modification',
	noChangesText: 'Les modifications des administrateurs apparaissent ici.',
	time: 'Heure',
	event: 'Événement',
	channel: 'Chaîne',
	details: 'Détails',
	user: 'Utilisateur',
	change: 'Modification',
	address: 'Adresse',
};
