// Reminders of programmes. They are kept in this browser, and come while a page of the gateway is open.

import { navigate, to } from '$lib/router';
import { toast } from '$lib/ui';
import { text } from './text';
import { clockOf } from './time';

/** A programme of which the viewer is reminded. */
export interface Reminder {
	/** Id of the programme. */
	id: string;
	title: string;
	/** Channel that shows it. */
	uuid: string;
	channel: string;
	/** When it begins, in milliseconds since 1970. */
	start: number;
}

const KEY = 'headwater.reminders';
/** Reminders that are kept. */
const MAX = 100;
/** How long before its start a programme is announced, in milliseconds. */
const BEFORE_MS = 60_000;
/** Later than this after its start it is not announced, in milliseconds. */
const LATE_MS = 10 * 60_000;
const TICK_MS = 10_000;
/** How long a message stays, in seconds. */
const SHOWN_S = 60;

const isReminder = (it: unknown): it is Reminder => {
	const { id, title, uuid, channel, start } = (it ?? {}) as Partial<Reminder>;
	return [id, title, uuid, channel].every((one) => typeof one === 'string') && typeof start === 'number';
};

function read(): Reminder[] {
	try {
		const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
		return Array.isArray(found) ? found.filter(isReminder).slice(0, MAX) : [];
	} catch {
		return [];
	}
}

class Reminders {
	list = $state.raw<Reminder[]>(read());
	#timer: ReturnType<typeof setInterval> | undefined;

	has(id: string): boolean {
		return this.list.some((it) => it.id === id);
	}

	add(it: Reminder): void {
		this.#set([...this.list.filter((one) => one.id !== it.id), it].slice(-MAX));
		this.start();
	}

	remove(id: string): void {
		this.#set(this.list.filter((it) => it.id !== id));
	}

	/** Looks at the clock from now on. */
	start(): void {
		if (this.#timer === undefined) this.#timer = setInterval(() => this.look(Date.now()), TICK_MS);
	}

	/** Announces what begins. */
	look(now: number): void {
		// Another tab may have added or announced some.
		this.list = read();
		const due = this.list.filter((it) => it.start - BEFORE_MS <= now);
		if (due.length === 0) return;
		this.#set(this.list.filter((it) => !due.includes(it)));
		for (const it of due) if (now <= it.start + LATE_MS) announce(it);
	}

	#set(list: Reminder[]): void {
		this.list = list;
		try {
			localStorage.setItem(KEY, JSON.stringify(list));
		} catch {
			// Without storage they last until the page is closed.
		}
	}
}

export const reminders = new Reminders();

function announce(it: Reminder): void {
	const message = text().begins(it.title, clockOf(it.start), it.channel);
	const watch = (): void => navigate(`/watch/${it.uuid}`);
	toast(message, { seconds: SHOWN_S, action: { label: text().watch, run: watch } });
	if (!('Notification' in globalThis) || Notification.permission !== 'granted') return;
	try {
		const shown = new Notification(it.title, { body: message, tag: `headwater-${it.id}` });
		shown.onclick = () => {
			window.focus();
			location.assign(to(`/watch/${it.uuid}`));
		};
	} catch {
		// Browsers of phones show them from a service worker only.
	}
}

/** Asks for the permission to show notifications, where the browser has them: with HTTPS, or on this machine. */
export async function askForNotifications(): Promise<void> {
	if (!('Notification' in globalThis) || Notification.permission !== 'default') return;
	await Notification.requestPermission().catch(() => undefined);
}
