export { added, type Sample } from './rate';
export { default as RateChart } from './RateChart.svelte';
export { default as Sparkline } from './Sparkline.svelte';
