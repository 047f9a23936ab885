import { number, texts } from '$lib/i18n';

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
			cpu: 'Processors',
			behind: 'Missing changes',
			version: 'Version',
			seen: 'Last seen',
		},
		own: 'answers now',
		writer: 'writes the configuration',
		actions: 'Actions',
		drain: 'Drain',
		drainAsk: (name: string) => `Drain “${name}”?`,
		drainText:
			'Its channels and jobs move to other nodes. Its viewers keep their streams, and balancers send it no new ones.',
		drained: (name: string) => `${name} is being drained.`,
		endDrain: 'End the drain',
		drainEnded: (name: string) => `${name} may open channels again.`,
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
