// Transport streams for tests.

/** Builds a packet with a section. */
export function packet(pid: number, section: number[]): number[] {
	const body = [0x47, 0x40 | (pid >> 8), pid & 0xff, 0x10, 0, ...section];
	return [...body, ...new Array<number>(188 - body.length).fill(0xff)];
}

/** A checksum that nobody looks at. */
export const crc = [0, 0, 0, 0];
/** A table that leads to the program map. */
export const pat = packet(0, [0x00, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xe0 | 0x10, 0x00, ...crc]);

/** Builds a program map of H.264 and AAC sounds with these packet ids and languages. */
export function withSounds(...sounds: [pid: number, language: string][]): number[] {
	const loop = [0x1b, 0xe0, 0x20, 0xf0, 0];
	for (const [pid, language] of sounds) {
		const code = [...language].map((it) => it.charCodeAt(0));
		const descriptors = code.length > 0 ? [0x0a, 4, ...code, 0] : [];
		loop.push(0x0f, 0xe0 | (pid >> 8), pid & 0xff, 0xf0, descriptors.length, ...descriptors);
	}
	const head = [0x02, 0xb0, 9 + loop.length + 4, 0, 1, 0xc1, 0, 0, 0xe0, 0x20, 0xf0, 0];
	return packet(0x1000, [...head, ...loop, ...crc]);
}
