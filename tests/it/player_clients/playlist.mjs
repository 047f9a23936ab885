// Reads a playlist with iptv-playlist-parser and @iptv/playlist and prints both results as JSON.
//
// Arguments: folder of the packages, address of the playlist.

import { createRequire } from 'node:module';

const [folder, url] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const text = await (await fetch(url)).text();
const { parseM3U } = require('@iptv/playlist');
console.log(JSON.stringify({
  parser: require('iptv-playlist-parser').parse(text),
  playlist: parseM3U(text),
}));
