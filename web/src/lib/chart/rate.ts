/** A measurement of a rate, in kilobits per second; `null` if there is none. */
export interface Sample {
	/** Milliseconds since 1970. */
	at: number;
	value: number | null;
}

/** A chart shows this much time. */
export const SPAN_MS = 300_000;
/** Measurements that are further apart are not joined. */
const GAP_MS = 5000;

/** Adds a measurement and drops those that the chart no longer shows. */
export function added(samples: Sample[], sample: Sample): Sample[] {
	const last = samples.at(-1);
	if (last && sample.at <= last.at) return samples;
	return [...samples.filter((it) => it.at > sample.at - SPAN_MS), sample];
}

/** Returns the lowest and the highest rate; `null` without measurements. */
export function rangeOf(samples: Sample[]): { lowest: number; highest: number } | null {
	const values = samples.map((it) => it.value).filter((it) => it !== null);
	return values.length === 0 ? null : { lowest: Math.min(...values), highest: Math.max(...values) };
}

/** Returns the next larger one of 1, 2, 5, 10, 20, 50 and so on. */
export function roundedUp(value: number): number {
	const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
	return [1, 2, 5, 10].map((it) => it * power).find((it) => it >= value) ?? 10 * power;
}

/**
 * Returns the line as a path of SVG in a box of this size. Rates begin at zero; measurements that are further apart than
 * `gap`, in milliseconds, are not joined.
 */
export function pathOf(
	samples: Sample[],
	now: number,
	width: number,
	height: number,
	max: number,
	gap = GAP_MS,
): string {
	const parts: string[] = [];
	let before: Sample | null = null;
	for (const sample of samples) {
		if (sample.value !== null) {
			const isJoined = before?.value != null && sample.at - before.at <= gap;
			const x = width * (1 - (now - sample.at) / SPAN_MS);
			const y = height * (1 - sample.value / max);
			parts.push(`${isJoined ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`);
		}
		before = sample;
	}
	return parts.join('');
}
