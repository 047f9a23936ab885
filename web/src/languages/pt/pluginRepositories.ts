import type { repositoriesText } from '../../pages/plugins/repositoriesText';
import type { Texts } from '../catalogue';

export const pluginRepositories: Texts<typeof repositoriesText> = {
	title: 'Repositórios de plugins',
	back: 'Todos os plugins',
	about:
		'Um repositório lista plugins com as suas versões e somas de verificação. Cada arquivo é verificado antes de ser instalado, e nada é executado até o ativar.',
	add: 'Adicionar um repositório',
	url: 'Endereço',
	urlHint: 'O do seu manifesto, como https://example.com/manifest.json.',
	key: 'Chave pública',
	keyHint: 'Opcional: uma chave OpenPGP da sua confiança. Então só são aceites listas assinadas com ela.',
	refresh: 'Atualizar lista',
	refreshOf: (name) => `Atualizar a lista de ${name}`,
	remove: 'Remover',
	removeOf: (name) => `Remover ${name}`,
	removeTitle: (name) => `Remover o repositório «${name}»?`,
	removeText: 'Os plugins instalados a partir dele mantêm-se.',
	verified: 'assinado com a sua chave',
	signature: {
		not_checked: 'assinatura não verificada: sem chave',
		not_signed: 'não assinado',
	},
	fetched: (at) => `Última leitura: ${at}`,
	plugins: 'Plugins disponíveis',
	none: 'Nenhum plugin',
	deprecated: 'obsoleto',
	isInstalled: (version) => `instalado: ${version}`,
	install: 'Instalar',
	installOf: (name) => `Instalar ${name}`,
	update: 'Atualizar',
	updateOf: (name) => `Atualizar ${name}`,
	by: (author, license, repository) => [author, license, repository].filter(Boolean).join(' · '),
	installed: (name, version) => `${name} ${version} está instalado.`,
	unsignedTitle: (name) => `Instalar «${name}» sem uma assinatura verificada?`,
	unsignedText:
		'A soma de verificação mostra que o arquivo é o que o repositório indica. Sem assinatura, ninguém responde pelo próprio repositório.',
	replaceTitle: 'Substituir o plugin instalado?',
	replaceText: (reason) => `${reason}. As suas definições e ficheiros mantêm-se.`,
	replace: 'Substituir',
};
