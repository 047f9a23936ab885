import { bytes, number } from '$lib/i18n';
import type { text } from '../../pages/settings/text';
import type { Texts } from '../catalogue';

type Said = readonly [label: string, hint?: string];

const networks = 'Redes separadas por vírgulas, como 192.168.0.0/16. Também: all, private, loopback.';
const seconds = 'Em segundos.';
const inBytes = 'Em bytes.';
const cleaned = 'Sem marcas de idioma e qualidade, como EN - e [4K]. O nome do provedor é mantido.';
const perLine = 'Um por linha. Usado se escolhido acima.';
const fields =
	'Pastas e nome, com {show}, {title}, {sub_title}, {season}, {episode}, {year}, {channel}, {start} e {id}.';
const cron = 'Minuto, hora, dia do mês, mês, dia da semana.';
const classes: Record<string, string> = {
	ui: 'Interface e API',
	streams: 'Fluxos',
	xc_api: 'Aplicativos (painel)',
	m3u_epg: 'Listas de reprodução e guias',
	tuner: 'Sintonizador',
	metrics: 'Métricas',
};

const said: Record<string, Said> = {
	connect_timeout: ['Tempo para conectar a um provedor', seconds],
	first_packet_timeout: ['Tempo até os primeiros dados de um fluxo', seconds],
	stall_timeout: ['Tempo sem dados até uma fonte ser dada como perdida', seconds],
	silence_suspected_after: ['Tempo sem dados até outro fluxo ser aberto em paralelo', seconds],
	picture_timeout: ['Tempo sem imagem até ser dada como perdida', 'Em segundos do programa. 0: nunca.'],
	sound_timeout: ['Tempo sem som até ser dado como perdido', 'Em segundos do programa. 0: nunca.'],
	buffering_timeout: ['Tempo em que se mede a velocidade de uma fonte', seconds],
	random_access_wait: ['Tempo em que se procura uma imagem inicial em uma nova fonte', seconds],
	start_lead: [
		'Parte do programa que uma nova fonte pode repetir para começar em um quadro-chave',
		'Em segundos. Depois, os espectadores ficam atrasados no máximo esse tempo.',
	],
	start_timeout: ['Tempo que um espectador espera pelo início de um canal', seconds],
	give_up_after: ['Tempo que um canal procura uma fonte antes de terminar', seconds],
	channel_shutdown_delay: ['Tempo que um canal continua sem espectadores', seconds],
	new_client_behind_seconds: ['Distância dos dados mais recentes em que um espectador começa', seconds],
	ring_seconds: ['Dados passados que um canal mantém, em tempo', seconds],
	ring_bytes: ['Dados passados que um canal mantém, em tamanho', inBytes],
	ring_gop_bytes: ['Tamanho do último grupo de imagens que sempre é mantido', inBytes],
	recording_lead_seconds: ['Avanço com que se lê uma fonte mais rápida que o tempo real', seconds],
	hls_height_max: ['Altura máxima de imagem de fluxos HLS com variantes', 'Em linhas. Vazio: qualquer.'],
	hls_bits_per_second_max: [
		'Taxa de bits máxima de fluxos HLS com variantes',
		'Em bits por segundo. Vazio: qualquer.',
	],
	ring_budget_bytes: [
		'Memória para os dados passados de todos os canais',
		'Em bytes. Vazio: um quarto da memória.',
	],
	slow_client_limit: ['Vezes por minuto que um espectador pode se atrasar'],
	return_to_preferred_after: [
		'Tempo até se tentar voltar ao primeiro fluxo',
		'Em segundos. Vazio: não se volta.',
	],
	at_limit: ['Quando um espectador muda de canal e a conta está cheia'],
	transcoders_max: ['Programas simultâneos para perfis de saída', '0 não executa nenhum.'],
	default_stream_profile: ['Perfil de fluxo'],
	default_user_agent: ['User agent'],
	default_output_profile: ['Perfil de saída'],
	reason_on_screen: ['Um clipe com o motivo em vez de um erro, para fluxos negados'],
	time_zone: ['Fuso horário', 'Como Europe/Lisbon. Usado pelos agendamentos.'],
	preferred_region: [
		'País dos canais que não indicam nenhum',
		'Duas letras, como BR. Usado ao associá-los a um guia.',
	],
	multicast_interface: [
		'Interface de rede para multicast',
		'Nome ou endereço, para grupos cujo endereço não indica nenhuma. Vazio: o sistema escolhe.',
	],
	udp_receive_buffer_bytes: ['Buffer de recepção de cada fonte UDP ou RTP', inBytes],
	epg_match_mode: ['Como os nomes são comparados com os de um guia'],
	epg_match_ignore_prefixes: ['Inícios de nomes que não contam', perLine],
	epg_match_ignore_suffixes: ['Finais de nomes que não contam', perLine],
	epg_match_ignore_custom: ['Partes de nomes que não contam', perLine],
	epg_match_threshold: ['Certeza a partir da qual uma associação é usada', 'Em porcentagem, de 50 a 100.'],
	epg_match_after_refresh: ['Associar canais depois de cada atualização de um guia'],
	epg_placeholders: [
		'Programas de preenchimento para canais sem guia',
		'Televisores e servidores multimídia mostram muitos canais só se tiverem programas.',
	],
	epg_placeholder_title: ['Título dos programas de preenchimento', '{channel_name} é o nome do canal.'],
	epg_placeholder_description: [
		'Descrição dos programas de preenchimento',
		'{channel_name} é o nome do canal. Vazio: nenhuma.',
	],
	epg_placeholder_minutes: ['Duração de um programa de preenchimento', 'Em minutos, de 5 a 1440.'],
	panel_rows: ['Filmes em aplicativos'],
	strm_enabled: ['Exportação agendada de filmes e séries como arquivos STRM'],
	strm_folder: ['Pasta da exportação', 'Um caminho absoluto.'],
	strm_user: [
		'Usuário cujos títulos são exportados',
		'São reproduzidos com a senha de reprodutor deste usuário.',
	],
	strm_nfo: ['Descrições junto aos arquivos exportados (NFO)'],
	strm_cron_expression: ['Agendamento da exportação (cron)', cron],
	log_level: [
		'Nível de log',
		'error, warn, info, debug ou trace; também por partes, como info,actors=debug.',
	],
	login_password_for_players: ['Os reprodutores podem usar a senha de início de sessão'],
	public_url: [
		'Endereço público',
		'O endereço com que os clientes acessam o gateway, se não for o que usam.',
	],
	adult_without_user: ['Quem acessa sem usuário vê os canais adultos'],
	schedule_enabled: ['Backups agendados'],
	schedule_frequency: ['Frequência'],
	schedule_time: ['Hora do dia', 'Horas e minutos, como 03:30.'],
	schedule_day_of_week: ['Dia dos backups semanais', '0 é domingo.'],
	retention_count: ['Backups agendados a manter', '0 mantém todos.'],
	schedule_cron_expression: ['Agendamento (cron)', `${cron} Substitui os três anteriores.`],
	tuner_count: ['Fluxos simultâneos que o sintonizador oferece'],
	friendly_name: ['Nome do sintonizador'],
	device_id: ['Identidade do sintonizador', 'Letras, algarismos e hifens.'],
	terminate_on_limit_exceeded: ['Terminar outro fluxo do usuário no limite', 'Senão, o novo é recusado.'],
	terminate_oldest: ['Terminar o mais antigo', 'Senão, o mais recente.'],
	prioritize_single_client_channels: ['Terminar primeiro os fluxos que mais ninguém vê'],
	tv_template: ['Nome do arquivo de um episódio', fields],
	tv_fallback_template: ['Nome do arquivo de um programa sem temporada nem episódio', fields],
	movie_template: ['Nome do arquivo de um filme', fields],
	movie_fallback_template: ['Nome do arquivo de um filme sem ano', fields],
	pre_offset_minutes: ['Minutos gravados antes do início', 'Para novas gravações.'],
	post_offset_minutes: ['Minutos gravados depois do fim', 'Para novas gravações.'],
	quota_bytes: ['Tamanho de todas as gravações', `${inBytes} 0: sem limite.`],
	user_quota_bytes: ['Tamanho das gravações de cada usuário', `${inBytes} 0: sem limite.`],
	retention_days: ['Dias de permanência das gravações', '0 as mantém.'],
	retention_free_bytes: ['Espaço livre no disco das gravações', `${inBytes} 0 não exclui nenhuma por isso.`],
	reserve_minutes: [
		'Minutos antes de uma gravação em que a conexão é reservada',
		'Nesse tempo, novos espectadores não a recebem. 0 não reserva nenhuma.',
	],
	reserved_slots: [
		'Conexões só para gravações',
		'Uma por linha: o id de uma conta, o número de conexões e, opcionalmente, dias e horas, como 2 = 1 mon-fri 18:00-23:00.',
	],
	disconnect_viewers: [
		'As gravações podem desconectar espectadores',
		'Se um programa não obtiver conexão de outro modo.',
	],
	comskip_enabled: ['Procurar publicidade depois de cada gravação', 'Com o programa comskip.'],
	comskip_mode: ['Publicidade encontrada', 'A gravação fica como está. A cópia fica junto a ela.'],
	remux: ['Contêiner das gravações terminadas', 'Sem ele, os arquivos continuam MPEG-TS.'],
	write_nfo: ['Descrições para servidores multimídia junto às gravações (NFO)'],
	write_artwork: ['Imagens para servidores multimídia junto às gravações'],
	recordings_in_players: [
		'Os reprodutores encontram as gravações',
		'Como filmes e séries em aplicativos, e na lista de gravações.',
	],
	standard_users_record: ['Usuários de nível 1 gravam', 'Só encontram e alteram as próprias gravações.'],
	ignore_same_channel_connections: ['Fluxos de um mesmo canal contam uma vez'],
};

const saidInGroup: Record<string, Record<string, Said>> = {
	timeshift_settings: {
		mode: ['Guardar o que os canais transmitem', 'Para canais sem escolha própria.'],
		hours: ['Horas guardadas de um canal'],
		channel_bytes: ['Tamanho do diferido de um canal', inBytes],
		total_bytes: [
			'Tamanho do diferido de todos os canais',
			`${inBytes} É reduzido antes de faltar espaço para gravações.`,
		],
	},
	name_settings: {
		clean_movies: ['Limpar os nomes de filmes', cleaned],
		clean_series: ['Limpar os nomes de séries', cleaned],
		clean_channels: ['Limpar os nomes de canais', 'Dos que as atualizações criam e dos novos.'],
		clean_accounts: ['Contas cujos nomes são todos limpos', 'Os seus ids, um por linha.'],
		keep_accounts: ['Contas cujos nomes ficam como estão', 'Os seus ids, um por linha.'],
		patterns: [
			'Padrões próprios, aplicados primeiro',
			'Um por linha: PADRÃO => SUBSTITUIÇÃO. Com movie:, series: ou channel: antes, para um só tipo.',
		],
	},
	history_settings: {
		enabled: [
			'Guardar o histórico de taxas e espectadores',
			'Em arquivos de tamanho fixo na pasta de dados.',
		],
		users: ['Guardar o histórico de cada usuário', 'Ao desativar, o que foi guardado é eliminado.'],
		user_days: ['Dias de conservação do histórico dos usuários', 'De 1 a 60.'],
	},
	completion_settings: {
		completion_enabled: [
			'Completar filmes e séries',
			'Depois das importações. Os títulos são reconhecidos pelo id ou pelo nome e ano; se vários servirem, nenhum é usado.',
		],
		tmdb_api_key: [
			'A sua chave ou token de acesso',
			'Da sua conta em themoviedb.org. Nunca mais é mostrada.',
		],
		completion_language: ['Idioma dos títulos e sinopses', 'Como pt ou pt-PT.'],
		tmdb_address: ['Endereço da API', 'Outro apenas para um espelho próprio.'],
		completion_titles_per_run: ['Títulos por execução', 'De 1 a 100000. A execução seguinte faz o resto.'],
	},
	dvr_settings: { retention_count: ['Gravações a manter', '0 mantém todas.'] },
};

function saidOf(group: string, name: string): Said {
	const own = saidInGroup[group]?.[name];
	if (own) return own;
	const [member, part] = name.split('.', 2) as [string, string?];
	const of = classes[member] ?? member;
	if (part === 'connect') return [`${of}: quem pode se conectar`, networks];
	if (part === 'anonymous') return [`${of}: quem pode sem usuário`, networks];
	return said[name] ?? [name];
}

export const settings: Texts<typeof text> = {
	search: 'Procurar configurações',
	noMatch: 'Nenhuma configuração corresponde',
	sectionsLabel: 'Seções',
	sections: {
		system_settings: 'Geral',
		stream_settings: 'Fluxos',
		epg_settings: 'Guia',
		dvr_settings: 'Gravações',
		timeshift_settings: 'Canais em diferido',
		library_settings: 'Filmes e séries',
		name_settings: 'Nomes',
		completion_settings: 'Completar com TMDB',
		user_limit_settings: 'Limites de usuários',
		tuner_settings: 'Sintonizador',
		network_access: 'Acesso de redes',
		history_settings: 'Histórico',
		backup_settings: 'Backups',
		proxy_settings: 'Motor',
	},
	advanced: 'Avançado',
	advancedText: 'Estes valores servem quase sempre. Mude um só se souber por quê.',
	toBackups: 'Criar e restaurar backups',
	saidOf,
	fallback: (value) => `Padrão: ${value}`,
	reset: (label) => `Repor ${label}`,
	resetShort: 'Repor',
	own: 'alterado',
	none: 'nenhum',
	yes: 'sim',
	no: 'não',
	size: (n) => `${number(n)} (${bytes(n)})`,
	saved: 'Salvo.',
	choices: {
		replace_own: 'substituir a conexão do mesmo dispositivo',
		refuse: 'recusar a nova conexão',
		off: 'nunca',
		unavailable: 'para fluxos que agora não podem começar',
		all: 'também para espectadores negados e canais desconhecidos',
		daily: 'todos os dias',
		weekly: 'todas as semanas',
		none: 'nenhum',
		watched: 'enquanto alguém vê',
		always: 'sempre: ocupa uma conexão',
		mark: 'é marcada',
		cut: 'é marcada, e omitida em uma cópia',
		mkv: 'MKV',
		mp4: 'MP4',
		default: 'como estão',
		advanced: 'sem as partes abaixo',
		titles: 'uma entrada por filme',
		versions: 'uma entrada por versão',
	},
};
