import type { Catalogue } from '../catalogue';
import { activity } from './activity';
import { afterRecordings } from './afterRecordings';
import { backups } from './backups';
import { channelGuides } from './channelGuides';
import { channels } from './channels';
import { chart } from './chart';
import { common } from './common';
import { completion } from './completion';
import { grid } from './grid';
import { guide } from './guide';
import { guideChoice } from './guideChoice';
import { guideSources } from './guideSources';
import { health } from './health';
import { history } from './history';
import { identity } from './identity';
import { integrations } from './integrations';
import { lastHour } from './lastHour';
import { library } from './library';
import { lineups } from './lineups';
import { list } from './list';
import { logos } from './logos';
import { me } from './me';
import { nodes } from './nodes';
import { now } from './now';
import { offers } from './offers';
import { permissions } from './permissions';
import { pluginRepositories } from './pluginRepositories';
import { plugins } from './plugins';
import { profiles } from './profiles';
import { recordingRules } from './recordingRules';
import { recordingStorage } from './recordingStorage';
import { recordings } from './recordings';
import { replacement } from './replacement';
import { settings } from './settings';
import { setup } from './setup';
import { shared } from './shared';
import { shell } from './shell';
import { slots } from './slots';
import { sources } from './sources';
import { states } from './states';
import { titles } from './titles';
import { users } from './users';
import { viewers } from './viewers';
import { watch } from './watch';

const de: Catalogue = {
	activity,
	afterRecordings,
	backups,
	channelGuides,
	channels,
	chart,
	common,
	completion,
	grid,
	guide,
	guideChoice,
	guideSources,
	health,
	history,
	identity,
	integrations,
	lastHour,
	library,
	lineups,
	list,
	logos,
	me,
	nodes,
	now,
	offers,
	permissions,
	pluginRepositories,
	plugins,
	profiles,
	recordingRules,
	recordingStorage,
	recordings,
	replacement,
	settings,
	setup,
	shared,
	shell,
	slots,
	sources,
	states,
	titles,
	users,
	viewers,
	watch,
};

export default de;
