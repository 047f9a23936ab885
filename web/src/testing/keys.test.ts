// Svelte ends the page if two entries of a list have the same key. Names, labels, texts and addresses come from providers
// and may be equal, so a list is keyed by ids or by the position of its entries.

import { parse } from 'svelte/compiler';
import { expect, test } from 'vitest';

const sources = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });

/** Other keys that cannot occur twice, with the reason. */
const UNIQUE: Record<string, string> = {
	'lib/list/Grid.svelte: indexes (index)': 'positions, ascending',
	'lib/list/List.svelte: indexes (index)': 'positions, ascending',
	'lib/list/List.svelte: columns (column.key)': 'constants of the caller',
	'lib/ui/Conflicts.svelte: form.conflicts (name)': 'members of one object',
	'lib/ui/Tabs.svelte: tabs (tab.key)': 'constants of the caller, or the numbers of seasons, each once',
	'pages/channels/ChannelEditor.svelte: fields (field)': 'constants',
	'pages/channels/NumberPlan.svelte: changes.slice(0, SHOWN_MAX) (it.channel.id)':
		'ids; a plan has each channel once',
	'pages/channels/ProblemFilter.svelte: PROBLEMS (only)': 'constants',
	'pages/channels/StreamEditor.svelte: provided (field)': 'constants',
	'pages/common/guide/AssignGuide.svelte: value.result.candidates (candidate.epg_data_id)':
		'ids of guide channels; the gateway compares each one once',
	'pages/guide/Grid.svelte: hours (time)': 'half hours, ascending',
	'pages/guide/Grid.svelte: lines (line.index)': 'positions, ascending',
	'pages/guide/Grid.svelte: line.cells ?? [] (cell.from)': 'cells follow each other; see `cellsOf`',
	'pages/health/Health.svelte: value.lacking_confinement (lacking.part)': 'the gateway lists each part once',
	'pages/health/Health.svelte: value.problems (problem.key)':
		'the gateway makes the key from the kind and the id of what has the problem',
	'pages/history/ChartTable.svelte: rows (row.at)': 'steps, one after the other',
	'pages/history/History.svelte: lineCharts(answer) (chart.key)': 'constants',
	'pages/history/History.svelte: strips(answer) (strip.key)': 'constants',
	'pages/history/LastHour.svelte: plots (plot.key)': 'constants',
	'pages/history/LinePlot.svelte: chart.lines (line.key)': 'constants',
	'pages/history/StripChart.svelte: parts (part.start)': 'positions, ascending',
	'pages/integrations/Events.svelte: events (it.event)': 'types of events',
	'pages/integrations/Fields.svelte: options (option)': 'entries of a set',
	'pages/now/Demo.svelte: sources.value (source.name)': 'built into the gateway; the name is the id',
	'pages/now/ChannelRows.svelte: channels (channel.channel_id)': 'UUIDs; one entry for each live channel',
	'pages/now/Still.svelte: isInView ? picture.urls : [] (url)':
		'the browser makes a new address for each picture',
	'pages/now/TimelineView.svelte: run.entries.toReversed() (run.entries.length - index)':
		'positions from the end',
	'pages/now/WatchedFiles.svelte: watched (player.client_id)':
		'ids that the gateway counts; those of nodes differ',
	'pages/plugins/Limits.svelte: LIMIT_NAMES (name)': 'constants',
	'pages/plugins/Repositories.svelte: all (keyOf(it))':
		'the gateway leaves out a slug that a repository lists twice',
	'pages/recordings/ChosenField.svelte: ids (id)': 'sent without duplicates, and added once',
	'pages/recordings/Conflicts.svelte: lost.slice(0, NAMED_MAX) (it.recording_id)':
		'one entry for each recording',
	'pages/recordings/DaysField.svelte: inWeekOrder([...words.days.keys()]) (day)': 'days of a week',
	'pages/recordings/PaddingFields.svelte: paddings (name)': 'constants',
	'pages/recordings/Storage.svelte: storage.users (user.user_id)': 'one entry for each user',
	'pages/recordings/StorageLimits.svelte: LIMITS (name)': 'constants',
	'pages/settings/Settings.svelte: visible (group.id)': 'constants',
	'pages/settings/SettingsGroup.svelte: advanced (setting.name)': 'members of one object of the gateway',
	'pages/settings/SettingsGroup.svelte: plain (setting.name)': 'members of one object of the gateway',
	'pages/setup/ChannelsStep.svelte: plan.channels (channel.number)': '`planChannels` gives no number twice',
	'pages/setup/Setup.svelte: STEPS (name)': 'constants',
	'pages/setup/TestPlay.svelte: checks (check.name)': 'constants',
	'pages/slots/SlotList.svelte: brief ? active.slice(0, PROFILES_BRIEF) : active (profile.profile)':
		'ids; one entry for each profile',
	'pages/sources/AccountForm.svelte: BOX_VALUES (name)': 'constants',
	'pages/sources/NewSource.svelte: BOX_VALUES (name)': 'constants',
	'pages/users/AllowedHours.svelte: inWeekOrder(DAYS) (day)': 'constants',
	'pages/users/UserPanel.svelte: OUTPUT_FORMATS (format)': 'constants',
	'pages/watch/ChannelRail.svelte: lines (index)': 'positions, ascending',
	'pages/watch/PastProgrammes.svelte: playable (it.id)':
		'ids of guide channel and start; the guide keeps one programme for each start',
	'shell/Layout.svelte: groups (name)': 'constants',
	'shell/Layout.svelte: others (name)': 'constants',
	'shell/Layout.svelte: bar (page.path)': 'folders of pages',
	'shell/Palette.svelte: entries (entry.key)': 'the kind of the entry with its id',
	'shell/Shortcuts.svelte: text().shortcutList (keys)': 'constants',
};

interface Span {
	start: number;
	end: number;
}

interface Each extends Span {
	type: 'EachBlock';
	expression: Span;
	context: (Span & { type: string; name?: string }) | null;
	index?: string;
	key?: Span & { type: string; name?: string };
}

/** Returns the lists below a node of a component. */
function listsIn(node: unknown): Each[] {
	if (Array.isArray(node)) return node.flatMap(listsIn);
	if (typeof node !== 'object' || node === null) return [];
	const below = Object.values(node).flatMap(listsIn);
	return (node as Each).type === 'EachBlock' ? [node as Each, ...below] : below;
}

/** Returns the keys of a component that are neither a position nor an `id`, with their lists. */
function otherKeys(source: string): string[] {
	const written = (it: Span): string => source.slice(it.start, it.end).replace(/\s+/g, ' ');
	return listsIn(parse(source, { modern: true }).fragment).flatMap((each) => {
		const list = written(each.expression);
		if (!each.key) return [`${list} ()`];
		const key = written(each.key);
		const isPosition = key === each.index;
		const isId = each.context?.type === 'Identifier' && key === `${each.context.name}.id`;
		const isMember =
			list.startsWith('Object.entries(') && each.context && written(each.context).startsWith(`[${key},`);
		return isPosition || isId || isMember ? [] : [`${list} (${key})`];
	});
}

test('no list is keyed by something that may occur twice', () => {
	const found = Object.entries(sources).flatMap(([path, source]) =>
		otherKeys(source).map((it) => `${path.replace('../', '')}: ${it}`),
	);
	expect([...new Set(found)].toSorted()).toEqual(Object.keys(UNIQUE).toSorted());
});

test.each([
	['{#each list as it (it.id)}{/each}', []],
	['{#each list as it, n (n)}{/each}', []],
	['{#each Object.entries(map) as [name, value] (name)}{value}{/each}', []],
	['{#each list as it (it.name)}{/each}', ['list (it.name)']],
	['{#each list as it}{it}{/each}', ['list ()']],
	['{#each list as it (it)}{/each}', ['list (it)']],
	['{#each list as it, n (`${n} ${it.name}`)}{/each}', ['list (`${n} ${it.name}`)']],
	['{#each list as [name, value] (name)}{value}{/each}', ['list (name)']],
	['{#each list as it (it.parent.id)}{/each}', ['list (it.parent.id)']],
	['{#if a}<ul>{#each list as a (a.id)}{#each a.tags as b (b)}{/each}{/each}</ul>{/if}', ['a.tags (b)']],
])('the keys of %s', (source, keys) => expect(otherKeys(source)).toEqual(keys));
