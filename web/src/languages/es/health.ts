import { number, plural } from '$lib/i18n';
import type { text } from '../../pages/health/text';
import type { Texts } from '../catalogue';

export const health: Texts<typeof text> = {
	good: 'Todo funciona',
	problems: (n) => `${number(n)} ${plural(n, 'problema', 'problemas')}`,
	confinement: 'Aislamiento que falta en esta máquina',
	confinementHint:
		'Los complementos y programas se ejecutan sin estos límites. Cada uno indica la línea que lo añade.',
	parts: { landlock: 'Archivos y puertos (Landlock)', control_group: 'Memoria y procesadores (cgroups)' },
	overview: 'Resumen',
	version: 'Versión',
	channels: 'Canales',
	live: 'Canales en emisión',
	viewers: 'Espectadores',
	accounts: 'Fuentes activas',
	failing: 'Fuentes con fallos',
	expiring: 'Accesos que caducan',
	disk: 'Espacio libre en disco',
	diskOf: (free, all) => `${free} de ${all}`,
	store: 'Almacén',
	storeOf: (records, disk) => `${records} de registros, ${disk} en disco`,
	readOnly: 'Los cambios se rechazan.',
	nodes: 'Nodos del clúster',
	nodesOf: (members, all) => `${number(members)} de ${number(all)} son miembros`,
	log: 'Registro',
	logTo: 'Ver el registro',
	logLevel: 'Líneas',
	logLevels: { error: 'Errores', warn: 'Avisos y errores', info: 'Todo menos detalles', debug: 'Todo' },
	logSearch: 'Buscar en el registro',
	noLog: 'No hay líneas así desde el inicio.',
	time: 'Hora',
	level: 'Nivel',
	message: 'Mensaje',
	warning: 'aviso',
	error: 'error',
	fix: 'Ir a la solución',
};
