import { number } from '$lib/i18n';
import type { text } from '../../pages/common/guide/text';
import type { Texts } from '../catalogue';

export const guideChoice: Texts<typeof text> = {
	title: (name) => `Guia de ${name}`,
	present: 'Canal do guia:',
	presentById: 'Canal do guia com o mesmo id de guia:',
	noPresent: 'Este canal não tem canal do guia.',
	suggestions: 'Sugestões',
	decisions: {
		link: 'Um canal do guia corresponde.',
		tie: 'Vários canais do guia correspondem igualmente bem. Escolha um.',
		below_threshold: 'Nenhum canal do guia corresponde o suficiente. Estes são os mais parecidos.',
		no_candidate: 'Nenhum canal do guia tem um nome parecido.',
		no_name: 'O nome do canal não tem nenhuma palavra para comparar.',
	},
	score: (score) => `${number(score)}%`,
	use: 'Usar',
	useOne: (name, key) => `Usar ${name} (${key})`,
	useChosen: 'Usar o escolhido',
	other: 'Outro canal do guia',
	otherHint: 'Digite uma parte do nome ou do id.',
	unlink: 'Remover o canal do guia',
	noSources: 'Ainda não há guias',
	noSourcesText: 'Adicione primeiro um guia em Fontes.',
};
