import { number } from '$lib/i18n';
import type { text } from '../../pages/common/guide/text';
import type { Texts } from '../catalogue';

export const guideChoice: Texts<typeof text> = {
	title: (name) => `Guía de ${name}`,
	present: 'Canal de la guía:',
	presentById: 'Canal de la guía con el mismo id de guía:',
	noPresent: 'Este canal no tiene canal de la guía.',
	suggestions: 'Sugerencias',
	decisions: {
		link: 'Encaja un canal de la guía.',
		tie: 'Varios canales de la guía encajan igual de bien. Elige uno.',
		below_threshold: 'Ningún canal de la guía encaja lo suficiente. Estos son los más parecidos.',
		no_candidate: 'Ningún canal de la guía tiene un nombre parecido.',
		no_name: 'El nombre del canal no tiene ninguna palabra que comparar.',
	},
	score: (score) => `${number(score)} %`,
	use: 'Usar',
	useOne: (name, key) => `Usar ${name} (${key})`,
	useChosen: 'Usar el elegido',
	other: 'Otro canal de la guía',
	otherHint: 'Escribe una parte de su nombre o id.',
	unlink: 'Quitar el canal de la guía',
	noSources: 'Aún no hay guías',
	noSourcesText: 'Añade primero una guía en Fuentes.',
};
