import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/activity/text';
import type { Texts } from '../catalogue';

export const activity: Texts<typeof text> = {
	tabs: 'Tipos de atividade',
	events: 'Eventos',
	undo: 'Desfazer',
	changes: 'Alterações',
	undoThis: 'Desfazer',
	undoOf: (name) => `Desfazer: ${name}`,
	undone: 'Desfeito.',
	noUndo: 'Nada para desfazer',
	noUndoText: 'Operações com muitos canais podem ser desfeitas durante um dia.',
	conflict: 'Já não pode ser desfeito, porque estes registros mudaram desde então:',
	conflictTitle: 'Não foi desfeito',
	records: (n) => `${number(n)} ${plural(n, 'registro', 'registros')}`,
	noEvents: 'Não há eventos',
	noEventsText: 'Aqui aparecem os eventos desde o início do gateway.',
	noChanges: 'Ainda não há alterações',
	noChangesText: 'Aqui aparecem as alterações dos administradores.',
	time: 'Hora',
	event: 'Evento',
	channel: 'Canal',
	details: 'Detalhes',
	user: 'Usuário',
	change: 'Alteração',
	address: 'Endereço',
};
