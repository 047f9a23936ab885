import { number, texts } from '$lib/i18n';

export const text = texts('slots', {
	intro: 'Each connection to a provider takes a slot of an account profile.',
	idle: 'No slot is in use.',
	none: 'No account profiles',
	noneText: 'Slots appear here once there is a source.',
	addSource: 'Add a source',
	free: 'free',
	closing: 'closing',
	cooling: (seconds: string) => `cooling ${seconds} s`,
	unlimited: 'no limit',
	discovered: (n: number) => `limit ${number(n)} discovered`,
	inUse: (used: number, max: number) => `${number(used)} of ${number(max)} in use`,
	used: (n: number) => `${number(n)} in use`,
	waiting: 'Waiting',
	purposes: { live: '', preview: 'preview', trial: 'test', vod: 'film or episode' } as Record<string, string>,
	since: (time: string) => `begun ${time}`,
	groups: 'Server groups',
	inactive: 'inactive',
	all: (n: number) => `Show all ${number(n)}`,
});
