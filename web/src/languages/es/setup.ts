import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/setup/text';
import type { Texts } from '../catalogue';

const streams = (n: number) => `${number(n)} ${plural(n, 'flujo', 'flujos')}`;
const channels = (n: number) => `${number(n)} ${plural(n, 'canal', 'canales')}`;
const groups = (n: number) => `${number(n)} ${plural(n, 'grupo', 'grupos')}`;

export const setup: Texts<typeof text> = {
	product: 'Headwater',
	stepsLabel: 'Pasos',
	steps: {
		admin: 'Primer administrador',
		source: 'Fuente',
		groups: 'Grupos',
		channels: 'Canales',
		addresses: 'Reproductores',
		test: 'Prueba',
	},
	stepOf: (n, of, name) => `Paso ${number(n)} de ${number(of)}: ${name}`,
	continue: 'Continuar',
	leave: 'Salir de la configuración',
	adminTitle: 'Crear el primer administrador',
	adminText: 'El administrador configura la pasarela. Los demás usuarios vienen después.',
	username: 'Usuario',
	password: 'Contraseña',
	passwordHint: 'Al menos 10 caracteres, sin el nombre de usuario.',
	code: 'Código de configuración',
	codeHint: 'La parte tras # de la dirección que Headwater mostró al arrancar.',
	noCode:
		'El código aparece en el registro de la pasarela en cada arranque. En su máquina también puedes ejecutar: headwater user add admin --superuser',
	create: 'Crear e iniciar sesión',
	signInTitle: 'Iniciar sesión',
	signInText: 'Ya hay un administrador. Inicia sesión para continuar.',
	notAdmin: 'Solo los administradores pueden continuar la configuración.',
	signIn: 'Iniciar sesión',
	sourceTitle: '¿De dónde vienen los flujos?',
	sourcesKnown: (n) =>
		plural(n, `${number(n)} fuente está configurada.`, `${number(n)} fuentes están configuradas.`),
	anotherSource: 'Añadir otra fuente',
	groupsTitle: '¿Qué grupos quieres?',
	groupsText: 'Los grupos que dejes fuera no se importan. Puedes cambiarlo en cualquier momento en Fuentes.',
	noGroups: 'La lista no tiene grupos. Continúa con todos los flujos.',
	source: 'Fuente',
	group: 'Grupo',
	streamsTitle: 'Flujos',
	selected: (n, of, s) => `${number(n)} de ${groups(of)}, ${streams(s)}`,
	noneSelected: 'Selecciona al menos un grupo.',
	search: 'Buscar grupos',
	applying: 'Se vuelve a leer la lista sin los grupos que has dejado fuera.',
	channelsTitle: 'Crear canales a partir de los flujos',
	same: 'Flujos del mismo canal',
	sameHint: 'Un canal puede tener varios flujos. Si uno falla, se reproduce el siguiente.',
	merge: {
		name: 'tienen el mismo nombre',
		tvg_id: 'tienen el mismo id de guía',
		none: 'cada flujo se convierte en un canal',
	},
	numbers: 'Números',
	numbering: { provider: 'los del proveedor; si no, los libres más bajos', from: 'desde un primer número' },
	firstNumber: 'Primer número',
	previewOf: (n, of) =>
		n < of ? `Vista previa de los primeros ${number(n)} de ${streams(of)}` : `Vista previa de ${streams(of)}`,
	becomes: (s, c) => `${streams(s)} → ${channels(c)}.`,
	toExisting: (n) => `${streams(n)} se ${plural(n, 'añade', 'añaden')} a canales existentes.`,
	make: (n) => `Crear canales de ${streams(n)}`,
	skip: 'Continuar sin crearlos',
	making: (done, of) => `${number(done)} de ${streams(of)}`,
	made: (created, merged) =>
		merged > 0
			? `Creado: ${channels(created)}. Añadido a canales: ${streams(merged)}.`
			: `Creado: ${channels(created)}.`,
	numberColumn: 'N.º',
	nameColumn: 'Nombre',
	streamsColumn: 'Flujos',
	noStreams: 'Esta fuente no tiene flujos en directo.',
	addressesTitle: 'Introduce esto en tus reproductores',
	testTitle: 'Ver un canal',
	testChannel: 'Canal',
	noChannels: 'Aún no hay canales.',
	checks: 'Comprobaciones',
	check: {
		slot: 'Conexión de la fuente',
		connection: 'Conexión con el proveedor',
		packet: 'Primeros datos',
		picture: 'Imagen en este navegador',
	},
	checkStates: { waiting: 'en espera', good: 'funciona', bad: 'fallo' },
	finished: 'El canal se reproduce. La configuración está completa.',
	toNow: 'Abrir Headwater',
};
