import { millis, number } from '$lib/i18n';
import type { text } from '../../pages/nodes/text';
import type { Texts } from '../catalogue';

export const nodes: Texts<typeof text> = {
	intro: 'Os gateways deste cluster, como os vê o que responde.',
	alone: 'Este gateway não está em um cluster',
	aloneText:
		'Vários gateways podem atuar como um. O operador configura isso na seção [cluster] do arquivo de configuração.',
	disconnected: 'Os servidores NATS do cluster não estão acessíveis',
	problem: 'Este gateway não pode ser membro',
	error: 'erro',
	columns: {
		name: 'Nome',
		state: 'Estado',
		role: 'Função',
		channels: 'Canais',
		clients: 'Espectadores',
		slots: 'Conexões a provedores',
		cpu: 'Processadores',
		behind: 'Alterações pendentes',
		clock: 'Relógio',
		version: 'Versão',
		seen: 'Visto',
	},
	own: 'responde agora',
	writer: 'escreve a configuração',
	actions: 'Ações',
	drain: 'Esvaziar',
	drainAsk: (name) => `Esvaziar “${name}”?`,
	drainText:
		'Os canais e tarefas dele passam a outros nós, e os balanceadores não lhe enviam novos espectadores. Os atuais mantêm os fluxos por um tempo: duas horas, se o operador não definiu outro.',
	drained: (name) => `${name} está sendo esvaziado.`,
	endDrain: 'Terminar o esvaziamento',
	drainEnded: (name) => `${name} pode voltar a abrir canais.`,
	drainEnds: (time) => `espectadores até ${time}`,
	clock: (ms) => (ms === 0 ? '0 ms' : `${ms < 0 ? '−' : '+'}${millis(Math.abs(ms))}`),
	written: (version) => `Os nós escrevem a versão ${String(version)} dos seus dados.`,
	readLater: (version) => `Todos leem a versão ${String(version)}.`,
	reads: (oldest, newest) =>
		oldest === newest ? `dados ${String(newest)}` : `dados ${String(oldest)} a ${String(newest)}`,
	unfit: 'precisa ser atualizado',
	finalize: 'Finalizar',
	finalizeAsk: (version) => `Fazer todos os nós escreverem a versão ${String(version)} dos seus dados?`,
	finalizeText:
		'Depois, versões anteriores do gateway não podem entrar e nenhum nó pode voltar a elas. Não pode ser desfeito.',
	finalized: (version) => `Os nós escrevem agora a versão ${String(version)} dos seus dados.`,
	remove: 'Remover',
	removeAsk: (name) => `Remover “${name}” do cluster?`,
	removeText:
		'A partir daí, os outros nós recusam o certificado dele, e o nó para. Para voltar a entrar, precisa de um novo token.',
	removed: (name) => `${name} foi removido.`,
	add: 'Adicionar um nó',
	addFull: 'completo: abre fontes de provedores e atende espectadores',
	addEdge: 'borda: atende espectadores e não tem segredos de provedores',
	addMake: 'Criar um token',
	addRun:
		'Configure a seção [cluster] na nova máquina, com uma pasta de dados vazia, e execute lá este comando:',
	addCommand: 'Comando',
	addOnce: 'O token vale para uma máquina e durante uma hora. Não volta a ser mostrado.',
	states: {
		joining: 'entrando',
		alive: 'membro',
		draining: 'esvaziando',
		expired: 'não responde',
		left: 'saiu',
		unknown: 'desconhecido',
	},
	roles: { full: 'completo', edge: 'borda' },
	percent: (n) => `${number(n)}%`,
	never: 'nunca',
};
