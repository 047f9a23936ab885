import { millis, number } from '$lib/i18n';
import type { text } from '../../pages/nodes/text';
import type { Texts } from '../catalogue';

export const nodes: Texts<typeof text> = {
	intro: 'Las pasarelas de este clúster, como las ve la que responde.',
	alone: 'Esta pasarela no está en un clúster',
	aloneText:
		'Varias pasarelas pueden actuar como una. El operador lo configura en la sección [cluster] del archivo de configuración.',
	disconnected: 'No se puede acceder a los servidores NATS del clúster',
	problem: 'Esta pasarela no puede ser miembro',
	error: 'error',
	columns: {
		name: 'Nombre',
		state: 'Estado',
		role: 'Función',
		channels: 'Canales',
		clients: 'Espectadores',
		slots: 'Conexiones a proveedores',
		cpu: 'Procesadores',
		behind: 'Cambios pendientes',
		clock: 'Reloj',
		version: 'Versión',
		seen: 'Visto',
	},
	own: 'responde ahora',
	writer: 'escribe la configuración',
	actions: 'Acciones',
	drain: 'Vaciar',
	drainAsk: (name) => `¿Vaciar «${name}»?`,
	drainText:
		'Sus canales y tareas pasan a otros nodos, y los balanceadores no le envían espectadores nuevos. Los que tiene conservan sus flujos un tiempo: dos horas, si el operador no ha fijado otro.',
	drained: (name) => `${name} se está vaciando.`,
	endDrain: 'Terminar el vaciado',
	drainEnded: (name) => `${name} puede volver a abrir canales.`,
	drainEnds: (time) => `espectadores hasta ${time}`,
	clock: (ms) => (ms === 0 ? '0 ms' : `${ms < 0 ? '−' : '+'}${millis(Math.abs(ms))}`),
	written: (version) => `Los nodos escriben la versión ${String(version)} de sus datos.`,
	readLater: (version) => `Todos leen la versión ${String(version)}.`,
	reads: (oldest, newest) =>
		oldest === newest ? `datos ${String(newest)}` : `datos ${String(oldest)} a ${String(newest)}`,
	unfit: 'hay que actualizarlo',
	finalize: 'Finalizar',
	finalizeAsk: (version) => `¿Hacer que todos los nodos escriban la versión ${String(version)} de sus datos?`,
	finalizeText:
		'Después, las versiones anteriores de la pasarela no pueden unirse y ningún nodo puede volver a ellas. No se puede deshacer.',
	finalized: (version) => `Los nodos escriben ahora la versión ${String(version)} de sus datos.`,
	remove: 'Quitar',
	removeAsk: (name) => `¿Quitar «${name}» del clúster?`,
	removeText:
		'Los demás nodos rechazan desde entonces su certificado, y el nodo se detiene. Para volver a unirse necesita un token nuevo.',
	removed: (name) => `Se ha quitado ${name}.`,
	add: 'Añadir un nodo',
	addFull: 'completo: abre fuentes de proveedores y atiende a espectadores',
	addEdge: 'borde: atiende a espectadores y no tiene secretos de proveedores',
	addMake: 'Crear un token',
	addRun:
		'Configura la sección [cluster] en la máquina nueva, con una carpeta de datos vacía, y ejecuta allí esta orden:',
	addCommand: 'Orden',
	addOnce: 'El token vale para una máquina y durante una hora. No se vuelve a mostrar.',
	states: {
		joining: 'uniéndose',
		alive: 'miembro',
		draining: 'vaciándose',
		expired: 'no responde',
		left: 'ha salido',
		unknown: 'desconocido',
	},
	roles: { full: 'completo', edge: 'borde' },
	percent: (n) => `${number(n)} %`,
	never: 'nunca',
};
