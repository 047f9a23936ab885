import { number, plural } from '$lib/i18n';
import type { afterText } from '../../pages/recordings/afterText';
import type { Texts } from '../catalogue';

const conversions = {
	queued: (format: string) => `será convertida para ${format}`,
	running: (format: string) => `sendo convertida para ${format}`,
	completed: (format: string) => format,
	failed: (format: string) => `não foi convertida para ${format}`,
};

export const afterRecordings: Texts<typeof afterText> = {
	title: 'Depois de uma gravação',
	remux: (status, format, reason) =>
		[conversions[status](format.toUpperCase()), reason ?? ''].filter(Boolean).join(': '),
	container: 'Contêiner',
	containerHint: 'O MPEG-TS é mantido até o novo arquivo ter os mesmos fluxos e a mesma duração.',
	containers: { none: 'como foi gravado (MPEG-TS)', mkv: 'MKV', mp4: 'MP4' },
	nfo: 'Criar junto a cada arquivo uma descrição para servidores multimídia (NFO)',
	artwork: 'Criar junto a cada arquivo uma imagem para servidores multimídia',
	mode: 'Publicidade encontrada',
	modeHint: 'A gravação fica como está.',
	modes: { mark: 'é marcada', cut: 'é marcada, e omitida em uma cópia junto à gravação' },
	saved: 'Salvo.',
	commercials: 'Publicidade',
	search: 'Procurar publicidade',
	searches: {
		queued: 'aguarda a sua vez',
		running: 'procurando',
		completed: 'encontrada',
		none_found: 'nenhuma encontrada',
		failed: 'falhou',
	},
	breaks: (n, length) => `${number(n)} ${plural(n, 'intervalo', 'intervalos')}, ${length}`,
	columns: { start: 'De', end: 'Até', length: 'Duração' },
	cut: 'Cópia sem publicidade',
	cuts: { queued: 'aguarda a sua vez', running: 'em preparação', completed: 'pronta', failed: 'falhou' },
	playCut: 'Reproduzir a cópia',
	saveCut: 'Baixar a cópia',
	notSearched: 'A publicidade ainda não foi procurada.',
	comskip: 'Publicidade (comskip)',
	missing: 'O programa comskip não está instalado, ou programs.comskip indica outro.',
	enabled: 'Procurar publicidade depois de cada gravação',
	config: 'Configuração',
	configHint: 'Linhas de comskip.ini, como detect_method=43. Vazio: os valores do próprio comskip.',
	upload: 'Ler a configuração de um arquivo',
	uploaded: 'A configuração foi substituída.',
};
