import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/common/text';
import type { Texts } from '../catalogue';

const batches = (n: number) => `${number(n)} ${plural(n, 'lote', 'lotes')}`;

export const shared: Texts<typeof text> = {
	xtreamTitle: 'Aplicativos que pedem servidor, usuário e senha',
	server: 'Servidor',
	username: 'Usuário',
	password: 'Senha',
	playlistTitle: 'Reprodutores que usam endereços',
	kinds: {
		xtream: 'Servidor',
		m3u: 'Lista de reprodução (M3U)',
		xmltv: 'Guia (XMLTV)',
		m3u_with_key: 'Lista com chave de API',
		xmltv_with_key: 'Guia com chave de API',
		recordings: 'Gravações (M3U)',
		recordings_guide: 'Guia de gravações (XMLTV)',
		tuner: 'Sintonizador para servidores multimídia',
	},
	ofProfile: (kind, profile) => `${kind}, ${profile}`,
	holdsPassword: 'Estes endereços contêm a senha. Quem tiver um pode ver os canais.',
	withKeyTitle: 'Endereços que precisam de um cabeçalho',
	withKey: (header) => `Os programas enviam a chave de API no cabeçalho ${header}.`,
	loopback: (url) =>
		`${url} só é acessível a partir desta máquina. Abra esta página com o endereço da máquina na sua rede, ou defina o endereço público nas configurações.`,
	allowNetworks: 'Mudar as redes permitidas',
	favourite: (name) => `Favorito: ${name}`,
	sleep: {
		title: 'Desligamento automático',
		after: 'Os fluxos terminam em',
		start: 'Iniciar',
		change: 'Mudar',
		remove: 'Remover o temporizador',
		endsAt: (time, when) => `Todos os fluxos terminam às ${time} (${when}).`,
		isSet: 'O desligamento automático está ativo.',
		isRemoved: 'O desligamento automático está inativo.',
	},
	batch: (done, of) => `${number(done)} de ${batches(of)}`,
	stoppedAfter: (done, of, reason) => `${number(done)} de ${batches(of)}; depois: ${reason}`,
	undone: 'Desfeito.',
	pagesOf: (label) => `Páginas: ${label}`,
	older: 'Mais antigos',
	newer: 'Mais recentes',
	range: (from, until, all) => `${number(from)} a ${number(until)} de ${number(all)}`,
	order: {
		moveUp: (name) => `Subir ${name}`,
		moveDown: (name) => `Descer ${name}`,
		moveTo: (name) => `Posição de ${name}`,
		movedTo: (name, n) => `${name} está na posição ${number(n)}`,
		shown: (n, of) => `${number(n)} de ${number(of)}`,
	},
};
