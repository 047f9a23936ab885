// The panel of a channel, and the choice of its logo: loaded when the first of them is opened.

export { default as ChannelEditor } from './ChannelEditor.svelte';
export { default as LogoChoices } from './LogoChoices.svelte';
