import { number, plural, texts } from '$lib/i18n';

export const completionText = texts('completion', {
	attribution: 'This product uses the TMDB API but is not endorsed or certified by TMDB.',
	start: 'Complete now',
	stop: 'Stop',
	running: (done: number, of: number) => `Completing: ${number(done)} of ${number(of)}`,
	ended: (found: number, ambiguous: number, unknown: number) =>
		`The last run found ${number(found)}. Several results fitted ${number(ambiguous)}, and none fitted ${number(unknown)}.`,
	joined: (n: number) =>
		plural(n, '1 title was joined with another one.', `${number(n)} titles were joined with others.`),
	failed: (n: number) => `${number(n)} had no useful answer.`,
	leftOut: (n: number) => `${number(n)} are left to the next run.`,
	remove: 'Remove what was completed',
	removeTitle: 'Remove what was completed?',
	removeText: 'All films and series get the values of their providers back. Your own changes stay.',
	removed: (n: number) =>
		plural(n, '1 title has its own values again.', `${number(n)} titles have their own values again.`),
});
