import { number, plural } from '$lib/i18n';
import type { identityText } from '../../pages/sources/identityText';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} flux`;

export const identity: Texts<typeof identityText> = {
	intro:
		'Les fournisseurs changent adresses, noms et groupes. Une actualisation compare chaque entrée de la liste aux flux connus par ces clés, de la première à la dernière. Un flux reconnu garde ses chaînes et vos modifications. Une clé ne compte que si aucune autre entrée ni aucun autre flux n’a la même valeur.',
	keys: 'Clés auxquelles les flux sont reconnus',
	keyOf: {
		panel_id: ['Numéro au panel', 'Le numéro dans l’adresse d’un panel : …/user/password/NUMÉRO.ts.'],
		address: ['Adresse', 'L’adresse entière. Elle est toujours comparée.'],
		bare_address: [
			'Adresse sans son jeton',
			'Sans les parties qui changent : jetons, dates d’expiration et identifiants de la source.',
		],
		guide_id: ['ID du guide', 'L’ID dans la liste : tvg-id, sinon channel-id, sinon tvc-guide-stationid.'],
		name_and_group: ['Nom et groupe', 'Les deux ensemble, donc un nom peut être dans deux groupes.'],
		name: ['Nom', 'La clé la plus faible. Une liste où seuls les noms concordent attend votre décision.'],
	},
	recognises: (n) => `Reconnaît ${streams(n)}.`,
	preview: 'Aperçu d’une actualisation',
	defaultOrder: 'Ordre par défaut',
	saved: 'Enregistré. Vaut dès la prochaine actualisation.',
	read: (n) => `La liste a ${number(n)} ${plural(n, 'entrée', 'entrées')}. Rien n’a été modifié.`,
	waits: 'L’actualisation attendrait votre décision :',
	counts: 'Flux après l’actualisation',
	count: {
		unchanged: 'restent tels quels',
		moved: 'changent d’adresse',
		updated: 'changent de nom, de groupe ou d’autre valeur',
		created: 'sont nouveaux',
		stale: 'ne sont plus dans la liste',
		deleted: 'sont retirés',
		ambiguous: 'pourraient être plusieurs entrées, donc aucune n’est prise',
		leftOut: 'entrées sont omises par filtres et groupes',
	},
	lists: 'Flux modifiés',
	listOf: { moved: 'Autre adresse', updated: 'Modifié', created: 'Nouveau', missing: 'Absent' },
	columns: { name: 'Nom', host: 'Hôte', key: 'Reconnu par' },
	listed: (n, of) => `${number(n)} sur ${streams(of)} ${plural(n, 'listé', 'listés')}.`,
};
