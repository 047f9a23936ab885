export { live, onChanged, onFrame } from './live.svelte';
export type { ChannelStats, ClientStats, Frame, LiveChannel, Totals } from './frames';
