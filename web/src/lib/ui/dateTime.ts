// Times of fields, which browsers write without a time zone.

const two = (n: number): string => String(n).padStart(2, '0');

/** Writes a time in ISO 8601 as the field shows it: in the time zone of the browser, to the minute. */
export function toLocal(iso: string | null): string {
	const at = new Date(iso ?? '');
	if (Number.isNaN(at.getTime())) return '';
	const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
	return `${day}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Reads the text of a field; `null` if it is empty or only half typed. */
export function fromLocal(text: string): string | null {
	const at = new Date(text);
	return text === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}
