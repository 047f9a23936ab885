// The permissions of a plugin as sentences.

import { text } from './text';

type Members = Record<string, unknown> | null;

const listOf = (permissions: Members, name: string): string[] => {
	const list = permissions?.[name];
	return Array.isArray(list) ? list.map(String) : [];
};

function scopeSentence(scope: string): string {
	const words = text();
	const [area = '', right = ''] = scope.split(':');
	if (scope === 'full') return words.apiFull;
	const known = Object.hasOwn(words.areas, area) ? words.areas[area as keyof typeof words.areas] : undefined;
	const what = known ?? scope;
	return right === 'write' ? words.changes(what) : words.reads(what);
}

function fileSentence(file: string): string {
	const words = text();
	const isWrite = file.endsWith(':write');
	const place = file.replace(/:write$/, '');
	const what =
		place === 'recordings'
			? words.places.recordings
			: place === 'logos'
				? words.places.logos
				: words.in(place);
	return isWrite ? words.changesFiles(what) : words.readsFiles(what);
}

/** Returns what permissions allow, a sentence each. Without any, there is none. */
export function sentencesOf(permissions: Members): string[] {
	const words = text();
	return [
		...listOf(permissions, 'api').map(scopeSentence),
		...(permissions?.network === true ? [words.network] : []),
		...listOf(permissions, 'listen').map(words.listens),
		...listOf(permissions, 'programs').map(words.starts),
		...listOf(permissions, 'files').map(fileSentence),
	];
}

/** Returns a permission that an update asks for in addition as a sentence. */
export function additionalSentence(it: string): string {
	const words = text();
	const rest = (prefix: string): string | null => (it.startsWith(prefix) ? it.slice(prefix.length) : null);
	const [api, port, program, file] = [
		rest('API: '),
		rest('listening at port '),
		rest('starting the program '),
		rest('files: '),
	];
	if (api !== null) return scopeSentence(api);
	if (port !== null) return words.listens(port);
	if (program !== null) return words.starts(program);
	if (file !== null) return fileSentence(file);
	if (it === 'use of the whole API') return words.apiFull;
	if (it === 'connections to any host') return words.network;
	return it;
}
