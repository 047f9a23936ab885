// Moving rows of a list to another place: by pointer, or by keys. Only the target is kept, so rows may leave the window
// of the list meanwhile.

/** Where the rows of a list are. */
export interface Geometry {
	/** The scroll region. */
	region: HTMLElement;
	count: number;
	/** Heights of a row and of the head, in pixels. */
	row: number;
	head: number;
	/** Returns the position among all rows, in pixels, that shows at the upper edge. */
	position: () => number;
}

/** Distance from an edge at which the list scrolls, and the greatest step, in pixels. */
const EDGE = 48;
const STEP_MAX = 24;

/** Returns the gap between rows that is nearest to a position, from 0 (before the first) to the number of rows. */
export const gapAt = (position: number, row: number, count: number): number =>
	Math.min(count, Math.max(0, Math.round(position / row)));

/** Returns the pixels by which the list scrolls while the pointer is at this height of the view. */
export function scrollStep(y: number, height: number): number {
	const into = y < EDGE ? y - EDGE : y > height - EDGE ? y - (height - EDGE) : 0;
	return Math.max(-STEP_MAX, Math.min(STEP_MAX, Math.round(into / 2)));
}

/** A row on its way to another place. */
export class RowDrag {
	/** Number of the row that moves; `null` while none does. */
	from = $state<number | null>(null);
	/** The gap that it goes to. */
	to = $state(0);
	#end: (() => void) | null = null;

	/** Whether the target is another place than the present one. */
	get isMoved(): boolean {
		return this.from !== null && this.to !== this.from && this.to !== this.from + 1;
	}

	/** Moves the target by rows: the gap behind the next row, or before the one above. */
	step(from: number, by: number, count: number): void {
		if (this.from === null) [this.from, this.to] = [from, from];
		// The gaps before and behind the row itself are the same place.
		const own = this.from;
		const place = this.to > own ? this.to - 1 : this.to;
		const next = Math.min(count - 1, Math.max(0, place + by));
		this.to = next > own ? next + 1 : next;
	}

	/** Follows a pointer until it is released, and calls `drop` with the row and the gap. */
	follow(
		event: PointerEvent,
		from: number,
		geometry: () => Geometry | null,
		drop: (from: number, to: number) => void,
	): void {
		if (event.button !== 0) return;
		event.preventDefault();
		this.cancel();
		[this.from, this.to] = [from, from];
		let y = event.clientY;
		let frame = 0;
		const aim = (): void => {
			const list = geometry();
			if (!list) return this.cancel();
			const box = list.region.getBoundingClientRect();
			const inView = y - box.top - list.head;
			const scroll = scrollStep(inView, box.height - list.head);
			if (scroll !== 0) list.region.scrollTop += scroll;
			this.to = gapAt(list.position() + inView, list.row, list.count);
			frame = requestAnimationFrame(aim);
		};
		const move = (it: PointerEvent): void => {
			y = it.clientY;
		};
		const up = (): void => {
			const target = this.isMoved ? this.to : null;
			this.cancel();
			if (target !== null) drop(from, target);
		};
		const key = (it: KeyboardEvent): void => {
			if (it.key !== 'Escape') return;
			it.stopPropagation();
			this.cancel();
		};
		const cancel = (): void => this.cancel();
		addEventListener('pointermove', move);
		addEventListener('pointerup', up);
		addEventListener('pointercancel', cancel);
		addEventListener('keydown', key, true);
		frame = requestAnimationFrame(aim);
		this.#end = () => {
			cancelAnimationFrame(frame);
			removeEventListener('pointermove', move);
			removeEventListener('pointerup', up);
			removeEventListener('pointercancel', cancel);
			removeEventListener('keydown', key, true);
		};
	}

	cancel(): void {
		this.#end?.();
		this.#end = null;
		this.from = null;
	}
}
