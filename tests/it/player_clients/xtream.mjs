// Loads everything from a panel with @iptv/xtream-api and prints it as JSON.
//
// Arguments: folder of the packages, address, user name, password.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, url, username, password] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { Xtream } = await load('@iptv/xtream-api');
const { standardizedSerializer } = await load('@iptv/xtream-api/standardized');

const failure = async (running) => running.then(() => null, (error) => error.message);
const panel = new Xtream({ url, username, password, serializer: standardizedSerializer });
const refused = await failure(new Xtream({ url, username, password: 'wrong' }).getProfile());
console.log(JSON.stringify({
  refused,
  profile: await panel.getProfile(),
  server: await panel.getServerInfo(),
  categories: await panel.getChannelCategories(),
  channels: await panel.getChannels(),
  movies: [await panel.getMovieCategories(), await panel.getMovies()],
  shows: [await panel.getShowCategories(), await panel.getShows()],
  movie: await panel.getMovie({ movieId: 5 }),
  show: await panel.getShow({ showId: 7 }),
  unknown: [await failure(panel.getMovie({ movieId: 9 })), await failure(panel.getShow({ showId: 9 }))],
  guide: [await panel.getShortEPG({ channelId: 1, limit: 4 }), await panel.getFullEPG({ channelId: 1 })],
}));
