import { number } from '$lib/i18n';
import type { text } from '../../pages/slots/text';
import type { Texts } from '../catalogue';

export const slots: Texts<typeof text> = {
	intro: 'Cada conexão a um provedor ocupa um lugar em um perfil de conta.',
	idle: 'Não há conexões em uso.',
	none: 'Não há perfis de conta',
	noneText: 'As conexões aparecem aqui quando há uma fonte.',
	addSource: 'Adicionar uma fonte',
	free: 'livre',
	closing: 'fechando',
	cooling: (seconds) => `livre em ${seconds} s`,
	unlimited: 'sem limite',
	discovered: (n) => `limite detectado: ${number(n)}`,
	inUse: (used, max) => `${number(used)} de ${number(max)} em uso`,
	used: (n) => `${number(n)} em uso`,
	waiting: 'Em espera',
	purposes: { live: '', preview: 'pré-visualização', trial: 'teste', vod: 'filme ou episódio' },
	since: (time) => `desde ${time}`,
	groups: 'Grupos de servidores',
	inactive: 'inativo',
	all: (n) => `Mostrar todos (${number(n)})`,
};
