import { number, plural } from '$lib/i18n';
import type { identityText } from '../../pages/sources/identityText';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} ${plural(n, 'fluxo', 'fluxos')}`;

export const identity: Texts<typeof identityText> = {
	intro:
		'Os provedores mudam endereços, nomes e grupos. Uma atualização compara cada entrada da lista com os fluxos conhecidos por estas chaves, da primeira à última. Um fluxo reconhecido mantém os seus canais e as suas alterações. Uma chave só vale se nenhuma outra entrada e nenhum outro fluxo tiverem o mesmo valor.',
	keys: 'Chaves pelas quais os fluxos são reconhecidos',
	keyOf: {
		panel_id: ['Número no painel', 'O número no endereço de um painel: …/user/password/NUMBER.ts.'],
		address: ['Endereço', 'O endereço completo. Sempre é comparado.'],
		bare_address: [
			'Endereço sem o token',
			'Sem as partes que mudam: tokens, datas de validade e o acesso da fonte.',
		],
		guide_id: ['Id de guia', 'O id na lista: tvg-id; senão, channel-id; senão, tvc-guide-stationid.'],
		name_and_group: ['Nome e grupo', 'Os dois juntos, assim um nome pode estar em dois grupos.'],
		name: ['Nome', 'A chave mais fraca. Uma lista em que só os nomes correspondem aguarda a sua decisão.'],
	},
	recognises: (n) => `Reconhece ${streams(n)}.`,
	preview: 'Pré-visualizar uma atualização',
	defaultOrder: 'Ordem padrão',
	saved: 'Salvo. Vale na próxima atualização.',
	read: (n) => `A lista tem ${number(n)} ${plural(n, 'entrada', 'entradas')}. Nada foi alterado.`,
	waits: 'A atualização aguardaria a sua decisão:',
	counts: 'Fluxos depois da atualização',
	count: {
		unchanged: 'ficam como estão',
		moved: 'recebem outro endereço',
		updated: 'recebem outro nome, grupo ou outro valor',
		created: 'são novos',
		stale: 'já não estão na lista',
		deleted: 'são excluídos',
		ambiguous: 'poderiam ser várias entradas, então nenhuma é usada',
		leftOut: 'entradas ficam de fora por filtros e grupos',
	},
	lists: 'Fluxos alterados',
	listOf: { moved: 'Outro endereço', updated: 'Alterados', created: 'Novos', missing: 'Em falta' },
	columns: { name: 'Nome', host: 'Host', key: 'Reconhecido por' },
	listed: (n, of) => `Mostrados: ${number(n)} de ${streams(of)}.`,
};
