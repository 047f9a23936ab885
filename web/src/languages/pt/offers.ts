import { number, plural } from '$lib/i18n';
import type { offersText } from '../../pages/sources/offersText';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canais')}`;

export const offers: Texts<typeof offersText> = {
	intro:
		'A lista de reprodução indica estes guias. Leia-os para ver a quantos dos seus canais cada um serviria e adicione os que precisar.',
	emptyTitle: 'A lista não indica nenhum guia',
	emptyText: 'Guias com endereço próprio são adicionados em Fontes, Guias.',
	readAll: (n) => plural(n, 'Ler o guia', `Ler os ${number(n)} guias`),
	read: 'Ler',
	readOne: (address, n) => `Ler o guia ${n}: ${address}`,
	reading: (n, of) => `Lendo o guia ${number(n)} de ${number(of)}`,
	stop: 'Parar a leitura',
	add: 'Adicionar como fonte',
	addOne: (address, n) => `Adicionar o guia ${n} como fonte: ${address}`,
	added: (name) => `${name} foi adicionado. A primeira atualização começou.`,
	isAdded: 'adicionado',
	open: 'Abrir',
	openOne: (n) => `Abrir o guia ${n}`,
	showAddresses: 'Mostrar endereços',
	hideAddresses: 'Ocultar endereços',
	serves: (n, added) =>
		n === 0
			? 'Não serve a nenhum dos seus canais'
			: `Serve a ${channels(n)}, ${added === 0 ? 'todos já com guia' : `${number(added)} deles agora sem guia`}`,
	inGuide: (n, same) => `${channels(n)} no guia, ${number(same)} com o mesmo id`,
};
