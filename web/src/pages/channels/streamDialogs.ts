// What is done with the selected streams: loaded when the first of them is wanted.

export { default as AssignDialog } from './AssignDialog.svelte';
export { default as MakeDialog } from './MakeDialog.svelte';
