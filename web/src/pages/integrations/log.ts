// What the log says about an attempt, in words.

import { laidOut, type LogEntry } from './model';
import { text } from './text';

/** Returns the answer of the target in a word: the status of HTTP, or the exit code. */
export function answerOf(it: Pick<LogEntry, 'response_payload' | 'output'>): string {
	if (it.response_payload) return String(it.response_payload.status_code ?? '');
	return it.output ? text().exit(it.output.exit_code) : '';
}

/** A text that was sent or received, with its title. */
export interface Part {
	title: string;
	content: string;
}

/** Returns what was sent and what came back, as far as there is something. */
export function partsOf(it: Pick<LogEntry, 'request_payload' | 'response_payload' | 'output'>): Part[] {
	const words = text();
	const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
	const { body, ...others } = it.request_payload;
	// A text that is no object is the only member.
	const isText = Object.keys(others).length === 0 && typeof body === 'string';
	const isEmpty = Object.keys(it.request_payload).length === 0;
	const request = isText ? body : isEmpty ? '' : JSON.stringify(it.request_payload, null, 2);
	const all = [
		{ title: words.request, content: request },
		{ title: words.answer, content: laidOut(textOf(it.response_payload?.body)) },
		{ title: words.stdout, content: textOf(it.output?.stdout) },
		{ title: words.stderr, content: textOf(it.output?.stderr) },
	];
	return all.filter((part) => part.content !== '');
}
