// The formats in which a user may play live channels: a property of the user.

/** A format, by the extension of its addresses. */
export type OutputFormat = 'ts' | 'm3u8' | 'mp4';

export const OUTPUT_FORMATS: readonly OutputFormat[] = ['ts', 'm3u8', 'mp4'];

/** The names that the gateway knows. */
const NAMES: Record<string, OutputFormat> = {
	ts: 'ts',
	mpegts: 'ts',
	'mpeg-ts': 'ts',
	m3u8: 'm3u8',
	hls: 'm3u8',
	mp4: 'mp4',
	fmp4: 'mp4',
};

/** Returns the formats of the property `output_formats`, the preferred one first. Without a known name, all are allowed. */
export function outputFormatsOf(property: unknown): OutputFormat[] {
	const texts: unknown[] = typeof property === 'string' ? property.split(',') : [property].flat();
	const known = texts.flatMap((it) => (typeof it === 'string' ? (NAMES[it.trim().toLowerCase()] ?? []) : []));
	return known.length === 0 ? [...OUTPUT_FORMATS] : [...new Set(known)];
}
