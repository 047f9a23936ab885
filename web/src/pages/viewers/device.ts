// What a user agent says about the program of a viewer, in the words of people.

import { text } from './text';

/** Programs by a part of their user agent. The first row that matches counts; its groups are name and version. */
const PROGRAMS: [pattern: RegExp, name: (match: RegExpMatchArray) => string][] = [
	[/^Kodi\/(\d+)/i, ([, version]) => `Kodi ${version}`],
	[/^(?:VLC|LibVLC)\/(\d+(?:\.\d+)*)/i, ([, version]) => `VLC ${version}`],
	[
		/\b(TiviMate|Jellyfin|Emby|Plex|Channels|Infuse|OTT ?Navigator|Televizo|IPTVnator|mpv|MX ?Player)\b/i,
		([, name]) => name ?? '',
	],
	[/\bIPTVSmarters/i, () => 'IPTV Smarters'],
	[/^Lavf\//, () => 'FFmpeg'],
	[/^AppleCoreMedia\//, () => text().devices.applePlayer],
	[/\b(?:ExoPlayerLib|AndroidXMedia3)\//, () => text().devices.androidPlayer],
	[/\bokhttp\//, () => text().devices.androidApp],
	[/\bEdg\/(\d+)/, ([, version]) => `Edge ${version}`],
	[/\bOPR\/(\d+)/, ([, version]) => `Opera ${version}`],
	[/\bFirefox\/(\d+)/, ([, version]) => `Firefox ${version}`],
	[/\bChrom(?:e|ium)\/(\d+)/, ([, version]) => `Chrome ${version}`],
	[/\bVersion\/(\d+).*\bSafari\//, ([, version]) => `Safari ${version}`],
];

/** Devices and systems by a part of the user agent. The first row that matches counts. */
const SYSTEMS: [pattern: RegExp, name: string | (() => string)][] = [
	[/\bAFT\w+|Fire ?TV/i, 'Fire TV'],
	[/Apple ?TV|tvOS/i, 'Apple TV'],
	[/\biPhone\b/, 'iPhone'],
	[/\biPad\b/, 'iPad'],
	[/\bWeb0S|webOS\b/i, () => text().devices.lgTelevision],
	[/\bTizen\b/, () => text().devices.samsungTelevision],
	[/\bRoku\b/i, 'Roku'],
	[/\bAndroid\b/i, 'Android'],
	[/\bWindows\b/, 'Windows'],
	[/\bMac ?OS ?X|Macintosh/, 'macOS'],
	[/\bCrOS\b/, 'ChromeOS'],
	[/\bLinux\b/, 'Linux'],
];

/** Length of a program name that no row knows. */
const NAME_MAX = 40;

/** Returns program and device of a user agent, such as `Firefox 130, Windows`; an unknown program by its own name. */
export function deviceOf(agent: string): string {
	const known = PROGRAMS.map(([pattern, name]) => {
		const found = agent.match(pattern);
		return found && name(found);
	}).find((it) => it);
	const named = agent.match(/^([\w.-]+)\/([\w.-]+)/);
	const program = known ?? (named ? `${named[1]} ${named[2]}` : agent.trim());
	const system = SYSTEMS.find(([pattern]) => pattern.test(agent))?.[1];
	return [program.slice(0, NAME_MAX), typeof system === 'function' ? system() : system]
		.filter(Boolean)
		.join(', ');
}
