import { number, plural } from '$lib/i18n';
import type { completionText } from '../../pages/common/completionText';
import type { Texts } from '../catalogue';

export const completion: Texts<typeof completionText> = {
	attribution: 'Ce produit utilise l’API de TMDB, mais n’est ni approuvé ni certifié par TMDB.',
	start: 'Compléter maintenant',
	stop: 'Arrêter',
	running: (done, of) => `En cours : ${number(done)} sur ${number(of)}`,
	ended: (found, ambiguous, unknown) =>
		`Titres trouvés au dernier passage : ${number(found)}. Plusieurs résultats convenaient : ${number(ambiguous)} ; aucun : ${number(unknown)}.`,
	joined: (n) =>
		plural(
			n,
			`${number(n)} titre a été réuni avec un autre.`,
			`${number(n)} titres ont été réunis avec d’autres.`,
		),
	failed: (n) => `Sans réponse utile : ${number(n)}.`,
	leftOut: (n) => `Laissés au prochain passage : ${number(n)}.`,
	remove: 'Retirer les compléments',
	removeTitle: 'Retirer les compléments ?',
	removeText:
		'Tous les films et séries retrouvent les valeurs de leurs fournisseurs. Vos propres changements restent.',
	removed: (n) =>
		plural(
			n,
			`${number(n)} titre a retrouvé ses valeurs.`,
			`${number(n)} titres ont retrouvé leurs valeurs.`,
		),
};
