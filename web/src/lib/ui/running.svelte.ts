import { attempt } from './messages.svelte';

/** What a button does: while an outcome is awaited, a second click has no effect; a failure becomes a message. */
export class Running {
	is = $state(false);

	async run(start: () => unknown): Promise<void> {
		if (this.is) return;
		const outcome = start();
		if (!(outcome instanceof Promise)) return;
		this.is = true;
		await attempt(() => outcome);
		this.is = false;
	}
}
