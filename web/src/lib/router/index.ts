export { base } from './base';
export { definePage, leaveGuard, navigate, router, setQuery, to, type Page } from './router.svelte';
