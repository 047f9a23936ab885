import { api, isAbort, ok, problem, type Schemas } from '$lib/api';
import { common } from '$lib/i18n';

export interface Message {
	id: number;
	text: string;
	tone: 'info' | 'good' | 'bad';
	action?: { label: string; run: () => unknown };
}

interface Question {
	title: string;
	text: string;
	action: string;
	danger: boolean;
	answer: (yes: boolean) => void;
}

/** Messages on the screen at once; the oldest leaves first. */
const MESSAGES_MAX = 4;

/** What the layout shows: messages, and the question that waits for an answer. */
export const messages = $state<{ list: Message[]; question: Question | null }>({ list: [], question: null });
let lastId = 0;

export function dismiss(id: number): void {
	messages.list = messages.list.filter((it) => it.id !== id);
}

interface ToastOptions {
	tone?: Message['tone'];
	action?: Message['action'];
	seconds?: number;
}

/** Shows a message for some seconds. Failures stay longer. */
export function toast(text: string, options: ToastOptions = {}): void {
	const tone = options.tone ?? 'info';
	lastId += 1;
	const id = lastId;
	messages.list = [...messages.list.slice(1 - MESSAGES_MAX), { id, text, tone, action: options.action }];
	setTimeout(() => dismiss(id), 1000 * (options.seconds ?? (tone === 'bad' ? 12 : 6)));
}

/** Asks before something that cannot be taken back. */
export function confirm(options: {
	title: string;
	text: string;
	action: string;
	danger?: boolean;
}): Promise<boolean> {
	messages.question?.answer(false);
	return new Promise((resolve) => {
		const answer = (yes: boolean): void => {
			messages.question = null;
			resolve(yes);
		};
		messages.question = { danger: false, ...options, answer };
	});
}

/** Runs something; a failure becomes a message. */
export async function attempt(run: () => unknown): Promise<boolean> {
	try {
		await run();
		return true;
	} catch (error) {
		if (!isAbort(error)) toast(problem(error), { tone: 'bad' });
		return false;
	}
}

/** Offers for 15 seconds to undo what an answer reports. Later, the page of activity does. */
export function offerUndo(
	answer: { undo?: Schemas['UndoHandle'] | null },
	message: string,
	onUndone?: () => void,
): void {
	const undo = answer.undo;
	if (!undo) return toast(message, { tone: 'good' });
	const run = (): Promise<boolean> =>
		attempt(async () => {
			const done = await ok(api.POST('/api/channels/undo/{id}/', { params: { path: { id: undo.id } } }));
			toast(done.message, { tone: 'good' });
			onUndone?.();
		});
	toast(message, { tone: 'good', seconds: 15, action: { label: common().undo, run } });
}
