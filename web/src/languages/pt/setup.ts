import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/setup/text';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} ${plural(n, 'fluxo', 'fluxos')}`;
const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canais')}`;
const groups = (n: number) => `${number(n)} ${plural(n, 'grupo', 'grupos')}`;

export const setup: Texts<typeof text> = {
	product: 'Headwater',
	stepsLabel: 'Passos',
	steps: {
		admin: 'Primeiro administrador',
		source: 'Fonte',
		groups: 'Grupos',
		channels: 'Canais',
		addresses: 'Reprodutores',
		test: 'Teste',
	},
	stepOf: (n, of, name) => `Passo ${number(n)} de ${number(of)}: ${name}`,
	continue: 'Continuar',
	leave: 'Sair da configuração',
	adminTitle: 'Criar o primeiro administrador',
	adminText: 'O administrador configura o gateway. Os outros usuários vêm depois.',
	username: 'Usuário',
	password: 'Senha',
	passwordHint: 'Pelo menos 10 caracteres, sem o nome de usuário.',
	code: 'Código de configuração',
	codeHint: 'A parte depois de # do endereço que o Headwater mostrou ao iniciar.',
	noCode:
		'O código aparece no log do gateway a cada início. Na máquina dele também se pode executar: headwater user add admin --superuser',
	create: 'Criar e iniciar sessão',
	signInTitle: 'Iniciar sessão',
	signInText: 'Já há um administrador. Inicie sessão para continuar.',
	notAdmin: 'Só administradores podem continuar a configuração.',
	signIn: 'Iniciar sessão',
	sourceTitle: 'De onde vêm os fluxos?',
	sourcesKnown: (n) =>
		plural(n, `${number(n)} fonte está configurada.`, `${number(n)} fontes estão configuradas.`),
	anotherSource: 'Adicionar outra fonte',
	groupsTitle: 'Quais grupos você quer?',
	groupsText: 'Os grupos deixados de fora não são importados. Pode ser mudado a qualquer momento em Fontes.',
	noGroups: 'A lista não tem grupos. Continue com todos os fluxos.',
	source: 'Fonte',
	group: 'Grupo',
	streamsTitle: 'Fluxos',
	selected: (n, of, s) => `${number(n)} de ${groups(of)}, ${streams(s)}`,
	noneSelected: 'Selecione pelo menos um grupo.',
	search: 'Procurar grupos',
	applying: 'A lista está sendo lida de novo sem os grupos deixados de fora.',
	channelsTitle: 'Criar canais a partir dos fluxos',
	same: 'Fluxos do mesmo canal',
	sameHint: 'Um canal pode ter vários fluxos. Se um falhar, o seguinte é reproduzido.',
	merge: {
		name: 'têm o mesmo nome',
		tvg_id: 'têm o mesmo id de guia',
		none: 'cada fluxo se torna um canal',
	},
	numbers: 'Números',
	numbering: {
		provider: 'os do provedor; senão, os livres mais baixos',
		from: 'a partir de um primeiro número',
	},
	firstNumber: 'Primeiro número',
	previewOf: (n, of) =>
		n < of
			? `Pré-visualização dos primeiros ${number(n)} de ${streams(of)}`
			: `Pré-visualização de ${streams(of)}`,
	becomes: (s, c) => `${streams(s)} → ${channels(c)}.`,
	toExisting: (n) => `Adicionado a canais existentes: ${streams(n)}.`,
	make: (n) => `Criar canais de ${streams(n)}`,
	skip: 'Continuar sem criá-los',
	making: (done, of) => `${number(done)} de ${streams(of)}`,
	made: (created, merged) =>
		merged > 0
			? `Criado: ${channels(created)}. Adicionado a canais: ${streams(merged)}.`
			: `Criado: ${channels(created)}.`,
	numberColumn: 'N.º',
	nameColumn: 'Nome',
	streamsColumn: 'Fluxos',
	noStreams: 'Esta fonte não tem fluxos ao vivo.',
	addressesTitle: 'Digite isto nos seus reprodutores',
	testTitle: 'Ver um canal',
	testChannel: 'Canal',
	noChannels: 'Ainda não há canais.',
	checks: 'Verificações',
	check: {
		slot: 'Conexão da fonte',
		connection: 'Ligação ao provedor',
		packet: 'Primeiros dados',
		picture: 'Imagem neste navegador',
	},
	checkStates: { waiting: 'em espera', good: 'funciona', bad: 'falha' },
	finished: 'O canal está em reprodução. A configuração está completa.',
	toNow: 'Abrir o Headwater',
};
