import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/viewers/text';
import type { Texts } from '../catalogue';

const viewerCount = (n: number) => `${number(n)} ${plural(n, 'espectador', 'espectadores')}`;

export const viewers: Texts<typeof text> = {
	count: (n) => viewerCount(n),
	selected: (n, of) => `${number(n)} de ${viewerCount(of)}`,
	stale: (seconds) => `sem atualização, ${number(seconds)} s`,
	search: 'Procurar usuário, dispositivo, endereço, canal ou programa',
	kind: 'O quê',
	anyKind: 'tudo',
	kinds: { live: 'canais ao vivo', title: 'filmes e séries', past: 'canais em diferido' },
	format: 'Formato',
	any: 'qualquer',
	node: 'Nó',
	columns: {
		user: 'Usuário',
		device: 'Dispositivo',
		address: 'Endereço',
		name: 'Vê',
		seconds: 'Desde',
		rate: 'Taxa',
		lost: 'Perdido',
		format: 'Formato',
		node: 'Nó',
		stop: 'Desconectar',
	},
	anonymous: 'sem sessão',
	from: (time) => `desde ${time}`,
	watching: (time) => `há ${time}`,
	formats: {
		mpegts: 'MPEG-TS',
		'hls-ts': 'HLS (MPEG-TS)',
		'hls-fmp4': 'HLS (fMP4)',
		'll-hls': 'HLS de baixa latência',
		fmp4: 'fMP4',
		udp: 'Saída UDP',
		rtp: 'Saída RTP',
	},
	file: 'arquivo',
	stop: (name) => `Desconectar ${name}`,
	none: 'Ninguém está vendo nada',
	noneText: 'Os espectadores de canais, filmes, séries e diferido aparecem aqui enquanto veem algo.',
	noneOfUser: 'Este usuário não vê nada neste momento.',
	noMatch: 'Nenhum espectador corresponde',
	clear: 'Mostrar todos os espectadores',
	devices: {
		applePlayer: 'Reprodutor da Apple',
		androidPlayer: 'Reprodutor Android',
		androidApp: 'App Android',
		lgTelevision: 'Televisor LG',
		samsungTelevision: 'Televisor Samsung',
	},
};
