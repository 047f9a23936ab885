import { api, isAbort, ok, problem, refusal, type Schemas } from '$lib/api';
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

/** Where messages can be shown; of the places that are there, the highest one shows them. */
export const PLACES = { page: 0, panel: 1, dialog: 2 } as const;

interface Place {
	id: number;
	height: number;
}
// Beside the state a plain list, because a component that is destroyed reads the state as it was before.
let opened: Place[] = [];
let places = $state.raw<Place[]>([]);
const highest = $derived(
	places.reduce<Place | null>((best, it) => (best && best.height > it.height ? best : it), null),
);

/** Opens a place for messages. */
export function openPlace(height: number): { readonly isTop: boolean; close: () => void } {
	lastId += 1;
	const id = lastId;
	places = opened = [...opened, { id, height }];
	return {
		get isTop() {
			return highest?.id === id;
		},
		close: () => (places = opened = opened.filter((it) => it.id !== id)),
	};
}

let isHeld = false;

/** Keeps the messages while somebody reads them. */
export function hold(isOn: boolean): void {
	isHeld = isOn;
}

/** Time between two attempts to remove a message that is held, in milliseconds. */
const HELD_MS = 1_000;

/** Removes a message after some time, and later while it is held. */
function dismissAfter(id: number, ms: number): void {
	setTimeout(() => (isHeld ? dismissAfter(id, HELD_MS) : dismiss(id)), ms);
}

export function dismiss(id: number): void {
	messages.list = messages.list.filter((it) => it.id !== id);
	// An element that goes away tells nobody that the pointer left it.
	if (messages.list.length === 0) isHeld = false;
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
	// The same outcome again takes the place of the earlier one, unless that offers something.
	const others = messages.list.filter((it) => it.action !== undefined || it.text !== text);
	messages.list = [...others.slice(1 - MESSAGES_MAX), { id, text, tone, action: options.action }];
	dismissAfter(id, 1000 * (options.seconds ?? (tone === 'bad' ? 12 : 6)));
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
	const run = async (): Promise<void> => {
		try {
			const done = await ok(api.POST('/api/channels/undo/{id}/', { params: { path: { id: undo.id } } }));
			toast(done.message, { tone: 'good' });
			onUndone?.();
		} catch (error) {
			if (!isAbort(error)) toast(common().notUndone(refusal(error)), { tone: 'bad' });
		}
	};
	toast(message, { tone: 'good', seconds: 15, action: { label: common().undo, run } });
}
