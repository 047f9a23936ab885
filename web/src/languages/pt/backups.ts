import type { text } from '../../pages/backups/text';
import type { Texts } from '../catalogue';

export const backups: Texts<typeof text> = {
	intro:
		'Um backup contém a configuração com todos os usuários, canais e fontes, e os arquivos enviados. Não contém as gravações.',
	make: 'Criar um backup',
	makeTitle: 'Criar um backup',
	makeText:
		'Os segredos do backup, como os acessos dos provedores, são cifrados com a frase secreta ou, sem ela, com o arquivo de chave desta instalação.',
	passphrase: 'Frase secreta',
	passphraseHint:
		'Com ela, o backup pode ser restaurado em qualquer máquina; sem ela, ninguém pode restaurá-lo. Vazia: usa-se o arquivo de chave.',
	add: 'Adicionar um backup de um arquivo',
	addHint: 'Um arquivo .tar.gz criado por este ou outro Headwater.',
	uploading: 'Enviando o backup',
	checking: 'Verificando o backup',
	added: (name) => `${name} foi adicionado.`,
	list: 'Backups na pasta de dados',
	columns: {
		name: 'Nome',
		created: 'Criado',
		size: 'Tamanho',
		version: 'Versão',
		secret: 'Restaurado com',
		actions: 'Ações',
	},
	secrets: { passphrase: 'a sua frase secreta', key_file: 'o arquivo de chave' },
	noBackup: 'não é um backup',
	none: 'Ainda não há backups',
	noneText: 'Crie um agora e deixe o agendamento criar outro todos os dias.',
	download: 'Baixar',
	downloadOf: (name) => `Baixar ${name}`,
	restore: 'Restaurar',
	restoreOf: (name) => `Restaurar ${name}`,
	deleteOf: (name) => `Excluir ${name}`,
	deleteTitle: (name) => `Excluir ${name}?`,
	deleteText: 'Depois não poderá ser restaurado, a menos que tenha sido baixado.',
	deleted: 'Excluído.',
	restoreTitle: 'Restaurar um backup',
	restoreText: (name, made) =>
		`Tudo volta ao estado de ${name}, criado ${made}. O que mudou desde então se perde, também usuários e senhas. Os fluxos terminam quando o gateway reinicia.`,
	key: 'Conteúdo do arquivo de chave',
	keyHint: 'Só se o backup for de outra instalação. Senão, deixe vazio.',
	tasks: {
		make: {
			pending: 'O backup está em espera',
			running: 'O backup está sendo criado',
			completed: 'O backup está pronto.',
			failed: 'O backup não foi criado',
		},
		restore: {
			pending: 'A restauração está em espera',
			running: 'O backup está sendo verificado e restaurado',
			completed: 'O backup foi restaurado.',
			failed: 'O backup não foi restaurado. Nada mudou',
		},
	},
	lost: 'O gateway já não conhece esta tarefa. Talvez tenha reiniciado.',
	schedule: 'Agendamento',
	scheduleText:
		'Os backups agendados não têm frase secreta: guarde também o arquivo de chave desta instalação.',
	enabled: 'Criar backups conforme o agendamento',
	frequency: 'Frequência',
	frequencies: { daily: 'todos os dias', weekly: 'todas as semanas' },
	time: 'Hora do dia',
	timeHint: 'Horas e minutos no fuso horário das configurações, como 03:30.',
	day: 'Dia',
	retention: 'Backups agendados a manter',
	retentionHint: '0 mantém todos. O agendamento nunca exclui outros.',
	cron: 'Agendamento (cron)',
	cronHint:
		'Minuto, hora, dia do mês, mês, dia da semana. Substitui os três anteriores, a menos que esteja vazio.',
	saved: 'Salvo.',
};
