// The titles of all pages. The navigation needs them before the texts of any page.

import { texts } from '$lib/i18n';

export const titles = texts('titles', {
	accounts: 'Accounts',
	activity: 'Activity',
	backups: 'Back-ups',
	channels: 'Channels',
	guide: 'Guide',
	guides: 'Guides',
	health: 'Health',
	history: 'History',
	integrations: 'Integrations',
	library: 'Library',
	lineups: 'Lineups',
	logos: 'Logos',
	me: 'Me',
	nodes: 'Nodes',
	now: 'Now',
	permissions: 'Permissions to confirm',
	plugins: 'Plugins',
	profiles: 'Profiles',
	recordings: 'Recordings',
	settings: 'Settings',
	setup: 'Set-up',
	slots: 'Slots',
	sources: 'Sources',
	streams: 'Streams',
	users: 'Users',
	viewers: 'Viewers',
	watch: 'Watch',
});
