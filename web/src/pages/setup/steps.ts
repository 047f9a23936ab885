// The steps of the set-up. Which one is next follows from the data of the gateway; nothing about it is stored.

export const STEPS = ['admin', 'source', 'groups', 'channels', 'addresses', 'test'] as const;
export type Step = (typeof STEPS)[number];

/** What the gateway has so far. */
export interface Facts {
	hasAdmin: boolean;
	isAdmin: boolean;
	/** Accounts that an admin can change. */
	accounts: number;
	streams: number;
	channels: number;
}

/** Returns the first step that is not done. */
export function nextStep(facts: Facts): Step {
	if (!facts.hasAdmin || !facts.isAdmin) return 'admin';
	if (facts.accounts === 0 || (facts.streams === 0 && facts.channels === 0)) return 'source';
	if (facts.channels === 0) return 'groups';
	return 'addresses';
}

/** Returns the steps that can be opened: those that have what they need. */
export function openSteps(facts: Facts): Set<Step> {
	if (!facts.hasAdmin || !facts.isAdmin) return new Set(['admin']);
	const steps: Step[] = ['source', 'addresses'];
	if (facts.streams > 0) steps.push('groups', 'channels');
	if (facts.channels > 0) steps.push('test');
	return new Set(steps);
}

/** Returns the step to show: the wanted one if it can be opened, otherwise the next one. */
export function shownStep(facts: Facts, wanted: string | null): Step {
	const open = openSteps(facts);
	return STEPS.find((it) => it === wanted && open.has(it)) ?? nextStep(facts);
}

/** Returns the step behind this one. */
export function after(step: Step): Step {
	return STEPS[Math.min(STEPS.indexOf(step) + 1, STEPS.length - 1)]!;
}
