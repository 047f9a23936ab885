import { number, plural } from '$lib/i18n';
import type { storageText } from '../../pages/recordings/storageText';
import type { Texts } from '../catalogue';

const none = 'Vide : sans limite.';

export const recordingStorage: Texts<typeof storageText> = {
	title: 'Stockage',
	limitsTitle: 'Limites',
	limitsText:
		'Parmi les enregistrements terminés, les plus anciens sont supprimés d’abord. Les protégés restent.',
	limits: {
		quota_bytes: ['Taille de tous les enregistrements, en GiB', none],
		user_quota_bytes: ['Taille des enregistrements par utilisateur, en GiB', none],
		retention_free_bytes: ['Espace à garder libre sur le disque, en GiB', none],
		retention_days: ['Jours de conservation des enregistrements', 'Vide : tant qu’il y a de la place.'],
		retention_count: ['Enregistrements conservés', none],
	},
	saved: 'Enregistré.',
	facts: { folder: 'Dossier', available: 'Espace libre', used: 'Utilisé', protected: 'Protégé' },
	unknown: 'inconnu',
	used: (size, n) => `${size}, ${number(n)} ${plural(n, 'enregistrement', 'enregistrements')}`,
	unmounted: 'Le dossier n’est pas monté',
	unmountedText:
		'Il lui manque le fichier .headwater-recordings. Rien n’est enregistré ni supprimé avant le retour du disque ; la liste des enregistrements reste.',
	full: 'Le disque est presque plein',
	fullText:
		'Aucun enregistrement ne commence. Supprimez-en, ou fixez ci-dessous des limites qui suppriment les anciens.',
	users: 'Utilisateurs',
	columns: { user: 'Utilisateur', recordings: 'Enregistrements', used: 'Utilisé', quota: 'Limite' },
	nobody: 'aucun utilisateur',
	noQuota: 'sans limite',
	ofQuota: (share, quota) => `${share} sur ${quota}`,
	isFull: 'plein',
	connections: 'Connexions',
	reserve: 'Minutes avant un enregistrement pendant lesquelles sa connexion est réservée',
	reserveHint: 'De nouveaux spectateurs ne l’obtiennent pas alors. 0 : aucune réservation.',
	disconnect: 'Les enregistrements peuvent déconnecter des spectateurs',
	disconnectHint: 'Si une émission n’obtient pas de connexion autrement.',
	settings: 'Autres réglages des enregistrements',
};
