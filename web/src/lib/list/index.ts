export { default as Grid } from './Grid.svelte';
export { default as List } from './List.svelte';
export type { Column } from './column';
export { arrayRows, PagedRows, resetWith, type Rows } from './rows.svelte';
export { Selection, type SelectionBody } from './selection.svelte';
export { positionOf, regionHeight, revealing, scrollTopOf, windowAt } from './map';
