import type { text } from '../../pages/backups/text';
import type { Texts } from '../catalogue';

export const backups: Texts<typeof text> = {
	intro:
		'Una copia contiene la configuración con todos los usuarios, canales y fuentes, y los archivos subidos. No contiene las grabaciones.',
	make: 'Crear una copia',
	makeTitle: 'Crear una copia de seguridad',
	makeText:
		'Los secretos de la copia, como los accesos de los proveedores, se cifran con la frase de contraseña o, si no hay, con el archivo de clave de esta instalación.',
	passphrase: 'Frase de contraseña',
	passphraseHint:
		'Con ella, la copia se puede restaurar en cualquier máquina; sin ella, nadie puede restaurarla. Vacía: se usa el archivo de clave.',
	add: 'Añadir una copia desde un archivo',
	addHint: 'Un archivo .tar.gz creado por este u otro Headwater.',
	uploading: 'Subiendo la copia',
	checking: 'Comprobando la copia',
	added: (name) => `Se ha añadido ${name}.`,
	list: 'Copias en la carpeta de datos',
	columns: {
		name: 'Nombre',
		created: 'Creada',
		size: 'Tamaño',
		version: 'Versión',
		secret: 'Se restaura con',
		actions: 'Acciones',
	},
	secrets: { passphrase: 'su frase de contraseña', key_file: 'el archivo de clave' },
	noBackup: 'no es una copia de seguridad',
	none: 'Aún no hay copias',
	noneText: 'Crea una ahora y deja que la programación cree otra cada día.',
	download: 'Descargar',
	downloadOf: (name) => `Descargar ${name}`,
	restore: 'Restaurar',
	restoreOf: (name) => `Restaurar ${name}`,
	deleteOf: (name) => `Eliminar ${name}`,
	deleteTitle: (name) => `¿Eliminar ${name}?`,
	deleteText: 'Después no se podrá restaurar, salvo que la hayas descargado.',
	deleted: 'Eliminada.',
	restoreTitle: 'Restaurar una copia de seguridad',
	restoreText: (name, made) =>
		`Todo vuelve al estado de ${name}, creada ${made}. Se pierde lo que ha cambiado desde entonces, también usuarios y contraseñas. Los flujos terminan cuando se reinicia la pasarela.`,
	key: 'Contenido del archivo de clave',
	keyHint: 'Solo si la copia es de otra instalación. Si no, déjalo vacío.',
	tasks: {
		make: {
			pending: 'La copia está en espera',
			running: 'Se está creando la copia',
			completed: 'La copia está lista.',
			failed: 'La copia no se ha creado',
		},
		restore: {
			pending: 'La restauración está en espera',
			running: 'La copia se está verificando y restaurando',
			completed: 'La copia se ha restaurado.',
			failed: 'La copia no se ha restaurado. No ha cambiado nada',
		},
	},
	lost: 'La pasarela ya no conoce esta tarea. Quizá se ha reiniciado.',
	schedule: 'Programación',
	scheduleText:
		'Las copias programadas no tienen frase de contraseña: guarda también el archivo de clave de esta instalación.',
	enabled: 'Crear copias según la programación',
	frequency: 'Frecuencia',
	frequencies: { daily: 'cada día', weekly: 'cada semana' },
	time: 'Hora del día',
	timeHint: 'Horas y minutos en la zona horaria de los ajustes, como 03:30.',
	day: 'Día',
	retention: 'Copias programadas que se conservan',
	retentionHint: '0 las conserva todas. La programación nunca elimina otras.',
	cron: 'Programación (cron)',
	cronHint:
		'Minuto, hora, día del mes, mes, día de la semana. Sustituye a los tres anteriores, salvo que esté vacío.',
	saved: 'Guardado.',
};
