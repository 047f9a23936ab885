// The actions of a plugin, and their runs.

import type { Schemas } from '$lib/api';
import type { Frame } from '$lib/live';
import { textIn } from './fields';
import { text } from './text';

export interface Action {
	id: string;
	label: string;
	description: string | undefined;
	/** Text of its button. */
	button: string;
	/** Question before it runs. */
	confirm: { title: string; text: string } | null;
	events: string[];
	/** Cron expression. */
	schedule: string | undefined;
}

type Members = Record<string, unknown>;

function readConfirm(value: unknown): Action['confirm'] {
	const isObject = typeof value === 'object' && value !== null;
	if (value !== true && !isObject) return null;
	const members = isObject ? (value as Members) : {};
	if (members.required === false) return null;
	return { title: textIn(members, 'title') ?? text().runTitle, text: textIn(members, 'message') ?? '' };
}

export function readAction(it: Members): Action {
	const id = textIn(it, 'id') ?? '';
	return {
		id,
		label: textIn(it, 'label') ?? id,
		description: textIn(it, 'description'),
		button: textIn(it, 'button_label') ?? text().run,
		confirm: readConfirm(it.confirm),
		events: Array.isArray(it.events) ? it.events.filter((one) => typeof one === 'string') : [],
		schedule: textIn(it, 'schedule'),
	};
}

export type Run = Schemas['PluginRun'];

export const RUN_TONES: Record<string, 'neutral' | 'info' | 'good' | 'warn' | 'bad'> = {
	waiting: 'neutral',
	running: 'info',
	ended: 'good',
	unknown_action: 'bad',
	failed: 'bad',
	crashed: 'bad',
	timed_out: 'bad',
	cancelled: 'warn',
	stopped: 'warn',
};

export const goesOn = (status: unknown): boolean => status === 'waiting' || status === 'running';

/** Returns the runs with the progress that a frame reports; `null` if they have to be read again. */
export function withProgress(runs: Run[], frame: Frame): Run[] | null {
	const status = String(frame.status);
	if (!goesOn(status) || !runs.some((it) => it.id === frame.run)) return null;
	return runs.map((it) =>
		it.id === frame.run
			? {
					...it,
					status,
					percent: typeof frame.percent === 'number' ? frame.percent : it.percent,
					message: typeof frame.message === 'string' ? frame.message : it.message,
				}
			: it,
	);
}

/** Returns what an object that an action returned says. */
export function outcomeOf(result: Members): { isGood: boolean; message: string } {
	const isGood = result.status !== 'error' && result.success !== false;
	const message = textIn(result, 'message', 'error') ?? (isGood ? text().ended : text().endedBadly);
	return { isGood, message };
}

/** Returns what the list of runs says about a run. */
export function messageOf(it: Run): string {
	if (it.result) return textIn(it.result, 'message', 'error') ?? it.message ?? '';
	return it.message ?? '';
}

/** Returns whether an action returned that it failed. */
export const isBadResult = (it: Run): boolean => it.result != null && !outcomeOf(it.result).isGood;
