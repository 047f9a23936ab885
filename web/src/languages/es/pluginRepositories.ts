import type { repositoriesText } from '../../pages/plugins/repositoriesText';
import type { Texts } from '../catalogue';

export const pluginRepositories: Texts<typeof repositoriesText> = {
	title: 'Repositorios de plugins',
	back: 'Todos los plugins',
	about:
		'Un repositorio ofrece plugins con sus versiones y sumas de comprobación. Cada archivo se comprueba antes de instalarlo, y nada se ejecuta hasta que usted lo active.',
	add: 'Añadir un repositorio',
	url: 'Dirección',
	urlHint: 'La de su manifiesto, como https://example.com/manifest.json.',
	key: 'Clave pública',
	keyHint: 'Opcional: una clave OpenPGP de su confianza. Entonces solo se aceptan listas firmadas con ella.',
	refresh: 'Actualizar lista',
	refreshOf: (name) => `Actualizar la lista de ${name}`,
	remove: 'Quitar',
	removeOf: (name) => `Quitar ${name}`,
	removeTitle: (name) => `¿Quitar el repositorio «${name}»?`,
	removeText: 'Los plugins instalados desde él se conservan.',
	verified: 'firmado con su clave',
	signature: {
		not_checked: 'firma sin comprobar: falta la clave',
		not_signed: 'sin firmar',
	},
	fetched: (at) => `Última consulta: ${at}`,
	plugins: 'Plugins disponibles',
	none: 'No hay plugins',
	deprecated: 'obsoleto',
	isInstalled: (version) => `instalado: ${version}`,
	install: 'Instalar',
	installOf: (name) => `Instalar ${name}`,
	update: 'Actualizar',
	updateOf: (name) => `Actualizar ${name}`,
	by: (author, license, repository) => [author, license, repository].filter(Boolean).join(' · '),
	installed: (name, version) => `${name} ${version} está instalado.`,
	unsignedTitle: (name) => `¿Instalar «${name}» sin una firma comprobada?`,
	unsignedText:
		'La suma de comprobación muestra que el archivo es el que indica el repositorio. Sin firma, nadie responde del propio repositorio.',
	replaceTitle: '¿Reemplazar el plugin instalado?',
	replaceText: (reason) => `${reason}. Sus ajustes y archivos se conservan.`,
	replace: 'Reemplazar',
};
