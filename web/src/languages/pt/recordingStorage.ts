import { number, plural } from '$lib/i18n';
import type { storageText } from '../../pages/recordings/storageText';
import type { Texts } from '../catalogue';

const none = 'Vazio: sem limite.';

export const recordingStorage: Texts<typeof storageText> = {
	title: 'Armazenamento',
	limitsTitle: 'Limites',
	limitsText: 'Das gravações terminadas, as mais antigas são excluídas primeiro. As protegidas se mantêm.',
	limits: {
		quota_bytes: ['Tamanho de todas as gravações, em GiB', none],
		user_quota_bytes: ['Tamanho das gravações de cada usuário, em GiB', none],
		retention_free_bytes: ['Espaço mantido livre no disco, em GiB', none],
		retention_days: ['Dias de permanência das gravações', 'Vazio: enquanto houver espaço.'],
		retention_count: ['Gravações a manter', none],
	},
	saved: 'Salvo.',
	facts: { folder: 'Pasta', available: 'Espaço livre', used: 'Em uso', protected: 'Protegido' },
	unknown: 'desconhecido',
	used: (size, n) => `${size}, ${number(n)} ${plural(n, 'gravação', 'gravações')}`,
	unmounted: 'A pasta não está montada',
	unmountedText:
		'Falta nela o arquivo .headwater-recordings. Nada é gravado nem excluído até o disco voltar; a lista de gravações se mantém.',
	full: 'O disco está quase cheio',
	fullText: 'Nenhuma gravação começa. Exclua gravações, ou defina abaixo limites que excluam as antigas.',
	users: 'Usuários',
	columns: { user: 'Usuário', recordings: 'Gravações', used: 'Em uso', quota: 'Limite' },
	nobody: 'sem usuário',
	noQuota: 'sem limite',
	ofQuota: (share, quota) => `${share} de ${quota}`,
	isFull: 'cheio',
	connections: 'Conexões',
	reserve: 'Minutos antes de uma gravação em que a conexão é reservada',
	reserveHint: 'Nesse tempo, novos espectadores não a recebem. 0: não é reservada.',
	disconnect: 'As gravações podem desconectar espectadores',
	disconnectHint: 'Se um programa não obtiver conexão de outro modo.',
	settings: 'Outras configurações das gravações',
};
