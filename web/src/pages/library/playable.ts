import { api, ok, saveFile, type Schemas } from '$lib/api';
import { pathOf } from './file';

/** A file that can be played. */
export interface Playable {
	/** Name for people. */
	name: string;
	/** Returns a fresh path of the file. */
	path: () => Promise<string>;
	/** Saves it, or a playlist with it, for players that know more containers and codecs. */
	save: () => Promise<void>;
	/** Whether the file is still being written. */
	isGrowing?: () => boolean;
	/** Where the viewer stopped the last time. */
	progress?: Progress;
}

/** Where a viewer stopped, which the gateway stores. */
export interface Progress {
	/** Returns the position to begin at, in seconds. */
	start: () => Promise<number>;
	/** Stores the position, in seconds. */
	tell: (position: number, duration: number | null) => void;
}

/** Returns the values of a position for the gateway. */
const progressOf = (position: number, duration: number | null) => ({
	position_secs: Math.max(0, Math.floor(position)),
	...(duration ? { duration_secs: Math.floor(duration) } : {}),
});

/** A position that cannot be read or stored disturbs nobody. */
const startOf = async (read: Promise<{ position_secs: number }>): Promise<number> =>
	read.then(
		(it) => it.position_secs,
		() => 0,
	);
const told = (sent: Promise<unknown>): void => void sent.catch(() => undefined);

/** A film or an episode, with its kind, id and extension in the addresses of player apps. */
export interface PlayableTitle extends Playable {
	external: External;
}

interface External {
	kind: 'movie' | 'series';
	id: number;
	extension: string;
}

/** The version of a title: the account that offers it, and its id there. */
export type Version = Pick<Schemas['TitleRelation'], 'm3u_account' | 'stream_id' | 'container_extension'>;

const choiceOf = (version: Version | undefined): Record<string, string | number> =>
	version
		? {
				m3u_account_id: version.m3u_account.id,
				...(version.stream_id ? { stream_id: version.stream_id } : {}),
			}
		: {};

export function playableFilm(film: { id: number; name: string }, version?: Version): PlayableTitle {
	const params = { path: { id: film.id } };
	const external: External = {
		kind: 'movie',
		id: film.id,
		extension: version?.container_extension ?? '',
	};
	return {
		name: film.name,
		path: async () =>
			pathOf((await ok(api.GET('/api/vod/movies/{id}/stream/', { params }))).url, choiceOf(version)),
		save: () => savePlaylist(film.name, external),
		progress: {
			start: () => startOf(ok(api.GET('/api/vod/movies/{id}/progress/', { params }))),
			tell: (position, duration) =>
				told(api.PUT('/api/vod/movies/{id}/progress/', { params, body: progressOf(position, duration) })),
		},
		external,
	};
}

export function playableEpisode(
	episode: Pick<Schemas['Episode'], 'id' | 'providers'>,
	name: string,
	version?: Version,
): PlayableTitle {
	const params = { path: { id: episode.id } };
	const external: External = {
		kind: 'series',
		id: episode.id,
		extension: (version ?? episode.providers[0])?.container_extension ?? '',
	};
	return {
		name,
		path: async () =>
			pathOf((await ok(api.GET('/api/vod/episodes/{id}/stream/', { params }))).url, choiceOf(version)),
		save: () => savePlaylist(name, external),
		progress: {
			start: () => startOf(ok(api.GET('/api/vod/episodes/{id}/progress/', { params }))),
			tell: (position, duration) =>
				told(api.PUT('/api/vod/episodes/{id}/progress/', { params, body: progressOf(position, duration) })),
		},
		external,
	};
}

/** Returns a playlist with one entry. */
export function playlistOf(name: string, url: string): string {
	return `#EXTM3U\n#EXTINF:-1,${name.replaceAll(/[\r\n]/g, ' ')}\n${url}\n`;
}

/** Saves a playlist with one address, for players that know more containers and codecs. */
export function savePlaylistOf(name: string, url: string): void {
	saveFile('title.m3u', new Blob([playlistOf(name, url)], { type: 'audio/x-mpegurl' }));
}

/** Returns what addresses of player apps begin with, and the login in them. */
export async function playerAddresses(): Promise<{ server: string; user: string; password: string }> {
	const own = await ok(api.GET('/api/accounts/users/me/addresses/'));
	return {
		server: own.server_url,
		user: encodeURIComponent(own.username),
		password: encodeURIComponent(own.password),
	};
}

/** Saves a playlist with this title, for players that know more containers and codecs. */
export async function savePlaylist(name: string, external: External): Promise<void> {
	const { server, user, password } = await playerAddresses();
	const file = `${external.id}${external.extension ? `.${encodeURIComponent(external.extension)}` : ''}`;
	savePlaylistOf(name, `${server}/${external.kind}/${user}/${password}/${file}`);
}
