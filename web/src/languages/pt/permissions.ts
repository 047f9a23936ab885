import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/permissions/text';
import type { Texts } from '../catalogue';

const users = (n: number) => `${number(n)} ${plural(n, 'usuário', 'usuários')}`;

export const permissions: Texts<typeof text> = {
	back: 'Usuários',
	intro:
		'Estas permissões foram atribuídas antes de terem efeito, ou em uma importação. Não permitem nada até serem confirmadas.',
	effects: 'O que permitem',
	permission: 'Permissão',
	effect: 'Efeito',
	list: 'Usuários com permissões não confirmadas',
	columns: { user: 'Usuário', permissions: 'Permissões' },
	search: 'Procurar usuários',
	none: 'Nenhuma permissão aguarda confirmação',
	noneText: 'Todas as permissões com efeito estão confirmadas.',
	noMatch: 'Nenhum usuário corresponde',
	confirm: 'Confirmar',
	confirmAll: (n) => `Confirmar para todos (${number(n)})`,
	confirmOf: (name) => `Confirmar as permissões de ${name}`,
	ask: (n) => `Confirmar as permissões de ${users(n)}?`,
	askText: 'Têm efeito imediato. Para retirar uma mais tarde, remova-a do usuário.',
	confirmed: (n) => `Confirmado para ${users(n)}.`,
	notice: (n) => `${users(n)} ${plural(n, 'tem', 'têm')} permissões que ninguém confirmou`,
	noticeText: 'Não têm efeito até um administrador as confirmar.',
	look: 'Vê-las',
};
