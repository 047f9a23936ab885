import { number, plural, texts } from '$lib/i18n';

export const text = texts({
	en: {
		title: 'Activity',
		tabs: 'Kinds of activity',
		events: 'Events',
		undo: 'Undo',
		changes: 'Changes',
		undoThis: 'Undo',
		undoOf: (name: string) => `Undo: ${name}`,
		undone: 'Undone.',
		noUndo: 'Nothing to undo',
		noUndoText: 'Operations on many channels can be undone for a day.',
		conflict: 'This can no longer be undone, because these records have changed since:',
		conflictTitle: 'Not undone',
		records: (n: number) => plural(n, '1 record', `${number(n)} records`),
		noEvents: 'No events',
		noEventsText: 'Events since the start of the gateway appear here.',
		noChanges: 'No changes yet',
		noChangesText: 'Changes by admins appear here.',
		time: 'Time',
		event: 'Event',
		channel: 'Channel',
		details: 'Details',
		user: 'User',
		change: 'Change',
		address: 'Address',
		older: 'Older',
		newer: 'Newer',
		range: (from: number, until: number, all: number) =>
			`${number(from)} to ${number(until)} of ${number(all)}`,
	},
});
