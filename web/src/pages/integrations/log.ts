// What the log says about an attempt, in words.

import { laidOut, type EventName, type LogEntry } from './model';
import { text } from './text';

/** Returns the answer of the target in a word: the status of HTTP, or the exit code. */
export function answerOf(it: Pick<LogEntry, 'response_payload' | 'output'>): string {
	if (it.response_payload) return String(it.response_payload.status_code ?? '');
	return it.output ? text().exit(it.output.exit_code) : '';
}

/** Returns what caused an attempt: the event, or why an action of a plugin ran without one. */
export function nameOf(it: Pick<LogEntry, 'event' | 'cause'>): string {
	const words = text();
	return it.cause === 'event' ? (words.events[it.event as EventName] ?? it.event) : words.causes[it.cause];
}

/** A text that was sent or received, with its title. */
export interface Part {
	title: string;
	content: string;
}

type Sent = Pick<LogEntry, 'request_payload' | 'response_payload' | 'output' | 'result'>;

/** Returns what was sent and what came back, as far as there is something. */
export function partsOf(it: Sent): Part[] {
	const words = text();
	const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
	const all = [
		{ title: words.request, content: objectText(it.request_payload) },
		{ title: words.answer, content: laidOut(textOf(it.response_payload?.body)) },
		{ title: words.stdout, content: textOf(it.output?.stdout) },
		{ title: words.stderr, content: textOf(it.output?.stderr) },
		{ title: words.result, content: objectText(it.result ?? {}) },
	];
	return all.filter((part) => part.content !== '');
}

/** Returns an object as a text. Any other text is the only member, `body`. */
function objectText(it: Record<string, unknown>): string {
	const { body, ...others } = it;
	if (Object.keys(others).length > 0) return JSON.stringify(it, null, 2);
	if (typeof body === 'string') return body;
	return body === undefined ? '' : JSON.stringify(it, null, 2);
}
