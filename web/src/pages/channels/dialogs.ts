// What is done with the selected channels, and the plan of a move: loaded when the first of them is wanted.

export { default as EditDialog } from './EditDialog.svelte';
export { default as LineupDialog } from './LineupDialog.svelte';
export { default as MatchDialog } from './guides/MatchDialog.svelte';
export { default as MergeDialog } from './MergeDialog.svelte';
export { default as MoveDialog } from './MoveDialog.svelte';
export { default as NumberDialog } from './NumberDialog.svelte';
export { default as RenameDialog } from './RenameDialog.svelte';
export { gentler, planMoves } from './moving';
export { numberedOf, readNumbered } from './numbered';
