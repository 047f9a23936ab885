import { number, plural } from '$lib/i18n';
import type { afterText } from '../../pages/recordings/afterText';
import type { Texts } from '../catalogue';

const conversions = {
	queued: (format: string) => `sera converti en ${format}`,
	running: (format: string) => `conversion en ${format} en cours`,
	completed: (format: string) => format,
	failed: (format: string) => `n’a pas été converti en ${format}`,
};

export const afterRecordings: Texts<typeof afterText> = {
	title: 'Après un enregistrement',
	remux: (status, format, reason) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(' : '),
	container: 'Conteneur',
	containerHint:
		'Le flux de transport reste tant que le nouveau fichier n’a pas les mêmes pistes et la même durée.',
	containers: { none: 'tel qu’enregistré (flux de transport)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Écrire une description pour serveurs multimédias à côté de chaque fichier (NFO)',
	artwork: 'Écrire une image pour serveurs multimédias à côté de chaque fichier',
	mode: 'Publicités trouvées',
	modeHint: 'L’enregistrement reste tel quel.',
	modes: { mark: 'marquées', cut: 'marquées, et omises dans une copie à côté de l’enregistrement' },
	saved: 'Enregistré.',
	commercials: 'Publicités',
	search: 'Rechercher les publicités',
	searches: {
		queued: 'en attente',
		running: 'recherche',
		completed: 'trouvées',
		none_found: 'aucune trouvée',
		failed: 'échec',
	},
	breaks: (n, length) => `${number(n)} ${plural(n, 'coupure', 'coupures')}, ${length}`,
	columns: { start: 'De', end: 'À', length: 'Durée' },
	cut: 'Copie sans publicités',
	cuts: { queued: 'en attente', running: 'en cours', completed: 'prête', failed: 'échec' },
	playCut: 'Lire la copie',
	saveCut: 'Télécharger la copie',
	notSearched: 'Les publicités n’ont pas encore été recherchées.',
	comskip: 'Publicités (comskip)',
	missing: 'Le programme comskip n’est pas installé, ou programs.comskip en désigne un autre.',
	enabled: 'Rechercher les publicités après chaque enregistrement',
	config: 'Configuration',
	configHint: 'Lignes de comskip.ini, comme detect_method=43. Vide : les valeurs de comskip.',
	upload: 'Lire la configuration depuis un fichier',
	uploaded: 'La configuration a été remplacée.',
};
