// Headers of requests as lines of a text.

/** Why lines are no headers. */
export type HeaderProblem = { kind: 'no_colon'; line: string } | { kind: 'twice'; name: string };

/** Returns headers as lines, one for each. */
export const linesOfHeaders = (headers: Readonly<Record<string, unknown>>): string =>
	Object.entries(headers)
		.map(([name, value]) => `${name}: ${String(value)}`)
		.join('\n');

/** Returns the headers of lines, or why they are none. Names are compared without case, as in HTTP. */
export function headersOf(text: string): { headers: Record<string, string> } | { problem: HeaderProblem } {
	const found = new Map<string, readonly [string, string]>();
	for (const line of text.split('\n').map((it) => it.trim())) {
		if (line === '') continue;
		const at = line.indexOf(':');
		const name = line.slice(0, Math.max(0, at)).trim();
		// The line may hold a secret, so only its beginning is repeated.
		if (name === '') return { problem: { kind: 'no_colon', line: line.slice(0, 20) } };
		if (found.has(name.toLowerCase())) return { problem: { kind: 'twice', name } };
		found.set(name.toLowerCase(), [name, line.slice(at + 1).trim()]);
	}
	return { headers: Object.fromEntries(found.values()) };
}
