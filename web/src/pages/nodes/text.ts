import { millis, number, texts } from '$lib/i18n';

export const text = texts({
	en: {
		title: 'Nodes',
		intro: 'The gateways of this cluster, as the one that answers sees them.',
		alone: 'This gateway is not in a cluster',
		aloneText:
			'Several gateways can act as one. The operator sets that up in the section [cluster] of the configuration file.',
		disconnected: 'The NATS servers of the cluster cannot be reached',
		problem: 'This gateway cannot be a member',
		error: 'error',
		columns: {
			name: 'Name',
			state: 'State',
			role: 'Role',
			channels: 'Channels',
			clients: 'Viewers',
			slots: 'Provider connections',
			cpu: 'Processors',
			behind: 'Missing changes',
			clock: 'Clock',
			version: 'Version',
			seen: 'Last seen',
		},
		own: 'answers now',
		writer: 'writes the configuration',
		actions: 'Actions',
		drain: 'Drain',
		drainAsk: (name: string) => `Drain “${name}”?`,
		drainText:
			'Its channels and jobs move to other nodes, and balancers send it no new viewers. Those that it has keep their streams for a time, two hours if the operator set no other.',
		drained: (name: string) => `${name} is being drained.`,
		endDrain: 'End the drain',
		drainEnded: (name: string) => `${name} may open channels again.`,
		drainEnds: (time: string) => `viewers until ${time}`,
		/** Milliseconds; negative if the clock is behind. */
		clock: (ms: number) => (ms === 0 ? '0 ms' : `${ms < 0 ? '−' : '+'}${millis(Math.abs(ms))}`),
		written: (version: number) => `The nodes write version ${String(version)} of their data.`,
		readLater: (version: number) => `All of them read version ${String(version)}.`,
		reads: (oldest: number, newest: number) =>
			oldest === newest ? `data ${String(newest)}` : `data ${String(oldest)} to ${String(newest)}`,
		unfit: 'must be updated',
		finalize: 'Finalize',
		finalizeAsk: (version: number) => `Let all nodes write version ${String(version)} of their data?`,
		finalizeText:
			'After this, older versions of the gateway cannot join, and no node can return to one. This cannot be undone.',
		finalized: (version: number) => `The nodes write version ${String(version)} of their data now.`,
		remove: 'Remove',
		removeAsk: (name: string) => `Remove “${name}” from the cluster?`,
		removeText:
			'Other nodes refuse its certificate from then on, and it stops. To join again, it needs a new token.',
		removed: (name: string) => `${name} is removed.`,
		add: 'Add a node',
		addFull: 'full: opens sources of providers, and serves viewers',
		addEdge: 'edge: serves viewers, and has no secrets of providers',
		addMake: 'Make a token',
		addRun:
			'Set up the section [cluster] of the configuration on the new machine, with an empty data folder, and run this command there:',
		addCommand: 'Command',
		addOnce: 'The token is for one machine and for one hour. It is not shown again.',
		states: {
			joining: 'joining',
			alive: 'member',
			draining: 'is drained',
			expired: 'does not answer',
			left: 'has left',
			unknown: 'unknown',
		},
		roles: { full: 'full', edge: 'edge' },
		percent: (n: number) => `${number(n)} %`,
		never: 'never',
	},
});
