import { number, plural } from '$lib/i18n';
import type { replacementText } from '../../pages/sources/replacementText';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} ${plural(n, 'fluxo', 'fluxos')}`;
const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canais')}`;
const keyOf = { panel_id: 'Número no painel', guide_id: 'Id de guia', name: 'Nome' };

export const replacement: Texts<typeof replacementText> = {
	intro:
		'Passe os canais desta fonte para outra, como um novo provedor. Cada fluxo é substituído pelo que melhor corresponde. Os canais mantêm números, nomes, favoritos e gravações.',
	target: 'Substituir por',
	choose: 'Escolha uma fonte',
	noTargets: 'Não há outra fonte',
	noTargetsText: 'Adicione o novo provedor como fonte e atualize-a; depois volte aqui.',
	score: 'Pontuação mínima de um par em porcentagem',
	scoreHint: 'De 85 a 100. Uma mais alta deixa mais fluxos como estão.',
	preview: 'Pré-visualização',
	counts: 'O que mudaria',
	count: {
		channels: 'canais recebem fluxos da outra fonte',
		pairs: 'fluxos têm equivalente',
		unpaired: 'fluxos não têm e se mantêm',
		removed: 'canais que a outra fonte criou para os mesmos fluxos são excluídos',
		kept: 'desses canais se mantêm, porque foram alterados ou estão em uso',
	},
	foundBy: (key, n) => `${keyOf[key]}: ${number(n)}`,
	keyOf,
	reasonOf: {
		no_match: 'Nada corresponde',
		ambiguous: 'Vários correspondem igualmente',
		excepted: 'Excluído',
	},
	lists: 'Fluxos',
	listOf: { pairs: 'Pares', unpaired: 'Sem equivalente' },
	columns: {
		name: 'Fluxo',
		replacement: 'Substituído por',
		host: 'Host',
		key: 'Encontrado por',
		score: 'Pontuação',
		reason: 'Motivo',
		channels: 'Canais',
	},
	listed: (n, of) => `Mostrados: ${number(n)} de ${streams(of)}.`,
	more: 'Mostrar mais',
	nothing: 'Nenhum fluxo desta fonte tem equivalente.',
	leftOut: (n) => `Deixado de fora: ${streams(n)}.`,
	apply: (n) => `Substituir os fluxos de ${channels(n)}`,
	canUndo: 'Pode ser desfeito durante 24 horas, aqui ou em Atividade.',
};
