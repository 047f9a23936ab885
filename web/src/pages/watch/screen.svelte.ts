// What the screen of a television shows beside the picture.

/** How long the controls stay after the last movement, in milliseconds. */
const AWAKE_MS = 3_500;
const LIST_KEY = 'headwater.watch.list';

export class ScreenState {
	/** Whether the controls show although nothing asks for them. */
	isAwake = $state(true);
	isFull = $state(false);
	hasStatistics = $state(false);
	/** Whether the channels are beside the picture. */
	isListed = $state(remembered());
	/** Whether they are above it, while it fills the screen. */
	isListedFull = $state(false);
	#timer: ReturnType<typeof setTimeout> | undefined;

	get hasList(): boolean {
		return this.isFull ? this.isListedFull : this.isListed;
	}

	toggleList(): void {
		if (this.isFull) this.isListedFull = !this.isListedFull;
		else {
			this.isListed = !this.isListed;
			remember(this.isListed);
		}
	}

	/** Shows the controls for some time. */
	wake(): void {
		this.isAwake = true;
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => (this.isAwake = false), AWAKE_MS);
	}

	toggleControls(): void {
		if (!this.isAwake) return this.wake();
		clearTimeout(this.#timer);
		this.isAwake = false;
	}

	end(): void {
		clearTimeout(this.#timer);
	}
}

function remembered(): boolean {
	try {
		return localStorage.getItem(LIST_KEY) !== 'hidden';
	} catch {
		return true;
	}
}

function remember(isListed: boolean): void {
	try {
		if (isListed) localStorage.removeItem(LIST_KEY);
		else localStorage.setItem(LIST_KEY, 'hidden');
	} catch {
		// Without storage it lasts until the page is left.
	}
}
