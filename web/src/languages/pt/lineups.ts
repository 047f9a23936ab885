import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/lineups/text';
import type { Texts } from '../catalogue';

export const lineups: Texts<typeof text> = {
	add: 'Adicionar lista',
	newTitle: 'Adicionar uma lista de canais',
	emptyTitle: 'Ainda não há listas de canais',
	emptyText:
		'Uma lista é uma seleção de canais para alguns usuários ou para um sintonizador. Sem listas, todos têm todos os canais.',
	columns: { name: 'Nome', channels: 'Canais', added: 'Novos canais' },
	channels: (n) => `${number(n)} ${plural(n, 'canal', 'canais')}`,
	addsNew: 'são adicionados',
	addsNone: 'não são adicionados',
	name: 'Nome',
	description: 'Descrição',
	addNew: 'Incluir os novos canais',
	addNewHint: 'Uma lista criada sem isto começa sem canais.',
	showChannels: 'Mostrar os canais',
	copy: 'Criar uma cópia',
	copyName: (name) => `${name} (cópia)`,
	saved: 'Salvo.',
	deleteTitle: (name) => `Excluir a lista de canais ${name}?`,
	deleteText: 'Os canais se mantêm. Os usuários e sintonizadores da lista a perdem. Não pode ser desfeito.',
	deleted: (name) => `A lista de canais ${name} foi excluída.`,
};
