import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/history/text';
import type { Texts } from '../catalogue';

export const history: Texts<typeof text> = {
	intro:
		'Medido a cada dez segundos e guardado neste gateway: a cada cinco minutos durante dois dias, a cada hora durante 60 dias.',
	introNode: (node) =>
		`Medido a cada dez segundos no nó ${node}, que guarda o seu próprio histórico: a cada cinco minutos durante dois dias, a cada hora durante 60 dias.`,
	scope: 'Mostrar',
	scopes: { gateway: 'Todo o gateway', account: 'Conta', channel: 'Canal', stream: 'Fluxo', user: 'Usuário' },
	choose: {
		account: 'Escolha uma conta para ver o seu histórico.',
		channel: 'Escolha um canal para ver o seu histórico.',
		stream: 'Escolha um fluxo para ver o seu histórico.',
		user: 'Escolha um usuário para ver o histórico.',
	},
	streams: 'Fluxos do canal',
	nobody: 'Nada escolhido',
	range: 'Período',
	ranges: { '6h': '6 horas', '24h': '24 horas', '7d': '7 dias', '60d': '60 dias' },
	off: 'O histórico está desativado',
	offText: 'Nada é guardado. É ativado nas configurações.',
	offUser: 'O histórico dos usuários não é guardado',
	offUserText: 'As taxas e os espectadores de cada usuário só são guardados se as configurações o indicarem.',
	toSettings: 'Abrir as configurações',
	nothing: 'Ainda sem dados',
	nothingText: 'Os primeiros valores aparecem após um minuto.',
	charts: {
		rate: 'Taxa',
		viewers: 'Espectadores',
		slots: 'Conexões em uso',
		health: 'Tempo de reprodução',
		failovers: 'Trocas de fonte',
		recordings: 'Disco das gravações',
	},
	series: {
		in: 'Recebido',
		out: 'Enviado',
		viewers: 'Média',
		viewersMax: 'Pico',
		slots: 'Em uso',
		limit: 'Limite',
		recordings: 'Tamanho',
	},
	highest: (value) => `máximo ${value}`,
	said: (chart, parts) => `${chart}: ${parts}.`,
	seriesSaid: (name, newest, highest) => `${name} ${newest}, no máximo ${highest}`,
	unknown: 'desconhecido',
	noLimit: 'sem limite',
	failovers: (n) => `${number(n)} ${plural(n, 'troca', 'trocas')} de fonte`,
	losses: (n) => `${number(n)} ${plural(n, 'falha', 'falhas')} de fluxos`,
	playing: (share) => `em reprodução ${share} do tempo de uso`,
	notUsed: 'sem uso',
	asTable: 'Como tabela',
	time: 'Hora',
};
