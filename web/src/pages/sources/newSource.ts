// The form for a new source, and what it sends.

export type SourceWay = 'url' | 'panel' | 'portal' | 'file';

export interface SourceInput {
	name: string;
	server_url: string;
	username: string;
	password: string;
	mac_address: string;
	serial_number: string;
	device_id: string;
	device_id2: string;
	signature: string;
	max_streams: number;
}

export const EMPTY_SOURCE: SourceInput = {
	name: '',
	server_url: '',
	username: '',
	password: '',
	mac_address: '',
	serial_number: '',
	device_id: '',
	device_id2: '',
	signature: '',
	max_streams: 1,
};

/** Name of a source to which the admin gave none: the host of its address, or the file without its ending. */
export function nameFor(way: SourceWay, url: string, file: File | null): string {
	if (way === 'file') return (file?.name ?? '').replace(/\.(m3u8?|txt)(\.(gz|xz|zip))?$/i, '');
	try {
		return new URL(url.trim()).hostname;
	} catch {
		return '';
	}
}

export interface PanelLogin {
	server: string;
	username: string;
	password: string;
}

/** Returns the login of a panel if the address of a playlist contains one. */
export function panelLogin(address: string): PanelLogin | null {
	let url: URL;
	try {
		url = new URL(address.trim());
	} catch {
		return null;
	}
	const [username, password] = [url.searchParams.get('username'), url.searchParams.get('password')];
	if (!/\/(get|player_api|panel_api|xmltv)\.php$/.test(url.pathname) || !username || !password) return null;
	return { server: url.origin, username, password };
}

/** What a portal may know a box by beside its MAC address. */
export const BOX_VALUES = ['serial_number', 'device_id', 'device_id2', 'signature'] as const;

/** The body of the request that creates or changes the source. A password or a value of a box that was left empty stays. */
export function bodyOf(way: Exclude<SourceWay, 'file'>, input: SourceInput, name: string) {
	const body = { name, max_streams: input.max_streams, server_url: input.server_url.trim() };
	if (way === 'url') return { ...body, account_type: 'STD' as const };
	const login = { username: input.username, ...(input.password ? { password: input.password } : {}) };
	if (way === 'panel') return { ...body, account_type: 'XC' as const, ...login };
	const known = BOX_VALUES.filter((it) => input[it].trim() !== '').map((it) => [it, input[it].trim()]);
	const box = { mac_address: input.mac_address.trim(), ...Object.fromEntries(known) };
	const asked = input.username ? login : {};
	return { ...body, account_type: 'STALKER' as const, ...box, ...asked };
}

export function formOf(input: SourceInput, name: string, file: File): FormData {
	const form = new FormData();
	form.set('name', name);
	form.set('max_streams', String(input.max_streams));
	form.set('file', file, file.name);
	return form;
}

/** Uploads of this size are refused by the gateway, in bytes. */
export const FILE_BYTES_MAX = 256 * 1024 * 1024;
