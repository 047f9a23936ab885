import { bytes, number, plural } from '$lib/i18n';
import type { text } from '../../pages/logos/text';
import type { Texts } from '../catalogue';

const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canais')}`;
const logoCount = (n: number) => `${number(n)} ${plural(n, 'logo', 'logos')}`;

export const logos: Texts<typeof text> = {
	logos: logoCount,
	channels,
	search: 'Procurar logos',
	use: 'Uso',
	uses: { any: 'Em uso e sem uso', used: 'Usados por canais', unused: 'Sem uso' },
	columns: { name: 'Nome', address: 'Endereço', channels: 'Canais' },
	add: 'Adicionar logo',
	deleteUnused: 'Excluir logos sem uso',
	deleteUnusedTitle: 'Excluir todos os logos que nenhum canal usa?',
	deleteText: 'Os canais perdem os logos excluídos. Pode ser desfeito durante um dia.',
	deleteMany: (n) => `Excluir ${logoCount(n)}`,
	question: (action) => `${action}?`,
	batches: (n) => `No máximo ${logoCount(n)} podem ser excluídos de uma vez.`,
	emptyTitle: 'Ainda não há logos',
	emptyText: 'Os logos vêm com as listas de reprodução ou são adicionados aqui.',
	noMatch: 'Nenhum logo corresponde',
	newTitle: 'Adicionar um logo',
	wayLabel: 'Origem do logo',
	ways: { url: 'Endereço', file: 'Arquivo' },
	name: 'Nome',
	nameHint: 'Por padrão, o do arquivo.',
	url: 'Endereço da imagem',
	file: 'Imagem',
	fileHint: (n) => `PNG, JPEG, WebP, GIF ou SVG, até ${bytes(n)}.`,
	fileMissing: 'Escolha um arquivo.',
	uploaded: 'enviado',
	usedBy: (n) => (n === 0 ? 'Nenhum canal o usa.' : `Usado por ${channels(n)}:`),
	saved: 'Salvo.',
	uploading: 'Enviando',
};
