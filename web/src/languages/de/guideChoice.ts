import { number } from '$lib/i18n';
import type { text } from '../../pages/common/guide/text';
import type { Texts } from '../catalogue';

export const guideChoice: Texts<typeof text> = {
	title: (name) => `Programmführer von ${name}`,
	present: 'Guide-Sender:',
	presentById: 'Guide-Sender mit derselben Guide-ID:',
	noPresent: 'Dieser Sender hat keinen Guide-Sender.',
	suggestions: 'Vorschläge',
	decisions: {
		link: 'Ein Guide-Sender passt.',
		tie: 'Mehrere Guide-Sender passen gleich gut. Wählen Sie einen.',
		below_threshold: 'Kein Guide-Sender passt gut genug. Das sind die ähnlichsten.',
		no_candidate: 'Kein Guide-Sender hat einen ähnlichen Namen.',
		no_name: 'Der Name des Senders hat kein Wort zum Vergleichen.',
	},
	score: (score) => `${number(score)} %`,
	use: 'Benutzen',
	useOne: (name, key) => `${name} (${key}) benutzen`,
	useChosen: 'Gewählten benutzen',
	other: 'Anderer Guide-Sender',
	otherHint: 'Teil des Namens oder der ID eingeben.',
	unlink: 'Guide-Sender entfernen',
	noSources: 'Noch kein Programmführer',
	noSourcesText: 'Fügen Sie zuerst unter „Quellen“ einen Programmführer hinzu.',
};
