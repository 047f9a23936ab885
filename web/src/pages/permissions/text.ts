import { number, plural, texts } from '$lib/i18n';

const users = (n: number): string => plural(n, '1 user', `${number(n)} users`);

export const text = texts('permissions', {
	back: 'Users',
	intro:
		'These permissions were assigned before they had an effect, or by an import. They allow nothing until you confirm them.',
	effects: 'What they allow',
	permission: 'Permission',
	effect: 'Effect',
	list: 'Users with unconfirmed permissions',
	columns: { user: 'User', permissions: 'Permissions' },
	search: 'Search users',
	none: 'No permission waits for you',
	noneText: 'All permissions with an effect are confirmed.',
	noMatch: 'No user matches',
	confirm: 'Confirm',
	confirmAll: (n: number) => `Confirm for all ${number(n)}`,
	confirmOf: (name: string) => `Confirm the permissions of ${name}`,
	ask: (n: number) => `Confirm the permissions of ${users(n)}?`,
	askText: 'They get their effect at once. To take one back later, remove it from the user.',
	confirmed: (n: number) => `Confirmed for ${users(n)}.`,
	notice: (n: number) => `${users(n)} ${n === 1 ? 'has' : 'have'} permissions that nobody has confirmed`,
	noticeText: 'They have no effect until an admin confirms them.',
	look: 'Look at them',
});
