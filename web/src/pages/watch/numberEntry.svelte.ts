// The number of a channel that is typed with digits.

/** Time after the last digit until the channel is chosen, in milliseconds. */
export const COMMIT_MS = 1_500;
/** Digits of a number. */
const LENGTH_MAX = 8;
/** How long a number that no channel has stays, in milliseconds. */
const UNKNOWN_MS = 2_500;

export class NumberEntry {
	typed = $state('');
	/** A number that no channel has. */
	unknown = $state<string | null>(null);

	#choose: (number: number) => Promise<boolean>;
	#timer: ReturnType<typeof setTimeout> | undefined;

	/** `choose` goes to a channel, and returns whether there is one. */
	constructor(choose: (number: number) => Promise<boolean>) {
		this.#choose = choose;
	}

	type(character: string): void {
		if (this.typed.length >= LENGTH_MAX) return;
		if (character === '.' && (this.typed === '' || this.typed.includes('.'))) return;
		this.unknown = null;
		this.typed += character;
		this.#after(COMMIT_MS, () => void this.commit());
	}

	/** Removes the last digit. Returns whether there was one. */
	erase(): boolean {
		if (this.typed === '') return false;
		this.typed = this.typed.slice(0, -1);
		this.#after(COMMIT_MS, () => void this.commit());
		return true;
	}

	/** Goes to the channel. Returns whether a number was typed. */
	async commit(): Promise<boolean> {
		clearTimeout(this.#timer);
		const { typed } = this;
		if (typed === '') return false;
		this.typed = '';
		if (!(await this.#choose(Number(typed)))) {
			this.unknown = typed;
			this.#after(UNKNOWN_MS, () => (this.unknown = null));
		}
		return true;
	}

	end(): void {
		clearTimeout(this.#timer);
	}

	#after(ms: number, run: () => void): void {
		clearTimeout(this.#timer);
		this.#timer = setTimeout(run, ms);
	}
}
