import { millis, number } from '$lib/i18n';
import type { text } from '../../pages/nodes/text';
import type { Texts } from '../catalogue';

export const nodes: Texts<typeof text> = {
	intro: 'I gateway di questo cluster, visti da quello che risponde.',
	alone: 'Questo gateway non è in un cluster',
	aloneText:
		'Più gateway possono funzionare come uno solo. Il gestore lo configura nella sezione [cluster] del file di configurazione.',
	disconnected: 'I server NATS del cluster non sono raggiungibili',
	problem: 'Questo gateway non può essere membro',
	error: 'errore',
	columns: {
		name: 'Nome',
		state: 'Stato',
		role: 'Ruolo',
		channels: 'Canali',
		clients: 'Spettatori',
		slots: 'Connessioni ai fornitori',
		cpu: 'Processori',
		behind: 'Modifiche mancanti',
		clock: 'Orologio',
		version: 'Versione',
		seen: 'Visto',
	},
	own: 'risponde ora',
	writer: 'scrive la configurazione',
	actions: 'Azioni',
	drain: 'Svuota',
	drainAsk: (name) => `Svuotare “${name}”?`,
	drainText:
		'I suoi canali e lavori passano ad altri nodi e non riceve nuovi spettatori. Quelli presenti mantengono i flussi per un certo tempo: due ore, se il gestore non ha stabilito altro.',
	drained: (name) => `${name} è in svuotamento.`,
	endDrain: 'Termina lo svuotamento',
	drainEnded: (name) => `${name} può di nuovo aprire canali.`,
	drainEnds: (time) => `spettatori fino alle ${time}`,
	clock: (ms) => (ms === 0 ? '0 ms' : `${ms < 0 ? '−' : '+'}${millis(Math.abs(ms))}`),
	written: (version) => `I nodi scrivono la versione ${String(version)} dei dati.`,
	readLater: (version) => `Tutti leggono la versione ${String(version)}.`,
	reads: (oldest, newest) =>
		oldest === newest ? `dati ${String(newest)}` : `dati da ${String(oldest)} a ${String(newest)}`,
	unfit: 'da aggiornare',
	finalize: 'Finalizza',
	finalizeAsk: (version) => `Far scrivere a tutti i nodi la versione ${String(version)} dei dati?`,
	finalizeText:
		'Poi le versioni precedenti del gateway non potranno più entrare e nessun nodo potrà tornarvi. Non si può annullare.',
	finalized: (version) => `Ora i nodi scrivono la versione ${String(version)} dei dati.`,
	remove: 'Rimuovi',
	removeAsk: (name) => `Rimuovere “${name}” dal cluster?`,
	removeText:
		'Gli altri nodi rifiuteranno il suo certificato e si fermerà. Per rientrare gli serve un nuovo token.',
	removed: (name) => `${name} è stato rimosso.`,
	add: 'Aggiungi un nodo',
	addFull: 'full: apre le sorgenti dei fornitori e serve gli spettatori',
	addEdge: 'edge: serve gli spettatori, senza i segreti dei fornitori',
	addMake: 'Crea un token',
	addRun:
		'Imposta la sezione [cluster] della configurazione sulla nuova macchina, con una cartella dati vuota, ed esegui lì questo comando:',
	addCommand: 'Comando',
	addOnce: 'Il token vale per una macchina e per un’ora. Non verrà più mostrato.',
	states: {
		joining: 'in ingresso',
		alive: 'membro',
		draining: 'in svuotamento',
		expired: 'non risponde',
		left: 'uscito',
		unknown: 'sconosciuto',
	},
	roles: { full: 'full', edge: 'edge' },
	percent: (n) => `${number(n)} %`,
	never: 'mai',
};
