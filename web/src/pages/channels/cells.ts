// The cells of a row that is edited: loaded when the first row is.

export { default as EditCell } from './EditCell.svelte';
export { nameOfNumber } from './numbered';
